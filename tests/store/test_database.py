"""Lock files, and folders in which processes cannot share a file."""

from pathlib import Path, PureWindowsPath

import pytest

from pytest_kbrel.errors import StoreError
from pytest_kbrel.store.database import Lock, is_held, network_of


@pytest.mark.parametrize(
    ("mounts", "result"),
    [
        ("", ""),
        ("a / nfs rw\n", "nfs"),
        ("a /x/y nfs rw\nb /x ext4 rw\n", "nfs"),
        ("a /x/y\n\na\n", ""),
    ],
)
def test_the_deepest_and_then_the_latest_mount_is_what_a_folder_lies_on(mounts, result):
    assert network_of(Path("/x/y"), mounts) == result


class WindowsFolder:
    """A folder on Windows, where a mapped drive resolves to the share."""

    def __init__(self, path):
        self._path = path

    def resolve(self):
        return PureWindowsPath(self._path)


@pytest.mark.parametrize(
    ("path", "kind"),
    [(r"\\server\share\cache", "Windows share"), (r"C:\Users\me\cache", "")],
)
def test_a_share_of_windows_is_a_network_folder(path, kind):
    assert network_of(WindowsFolder(path), "") == kind


def test_a_lock_is_held_by_one_until_it_is_free(tmp_path):
    path = tmp_path / "x.lock"
    assert not is_held(path)
    assert not path.exists()
    lock, other = Lock(path), Lock(path)
    lock.free()
    assert lock.take()
    assert not other.take()
    assert is_held(path, patience=0.0)
    lock.free()
    lock.free()
    assert not is_held(path, patience=0.0)
    assert other.take()
    other.free()
    with pytest.raises(StoreError, match="cannot be locked"):
        Lock(tmp_path / "none" / "x.lock").take()


MOUNTS = """\
server:/home /home nfs4 rw,vers=4.2 0 0
/dev/vda / ext4 rw 0 0
/dev/vdb /home/local\\040disk xfs rw 0 0
me@there:/ /mnt fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/tmp/cache", ""),
        ("/mnt/x", "fuse.sshfs"),
    ],
)
def test_a_network_folder_is_known_by_its_file_system(folder, kind):
    assert network_of(Path(folder), MOUNTS) == kind
