"""The folder of the cache: network file systems, and locks between processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path, PureWindowsPath

import pytest

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.store import Lock, Store, is_held, make_folder, network_of


@pytest.mark.parametrize(
    ("kind", "network"),
    [
        *((kind, True) for kind in ("nfs", "nfs4", "cifs", "smb", "smb3", "smbfs", "afs", "ceph", "lustre")),
        *(
            (kind, True)
            for kind in (
                "gpfs",
                "beegfs",
                "gluster",
                "glusterfs",
                "fuse.sshfs",
                "fuse.glusterfs",
                "wekafs",
                "panfs",
                "orangefs",
            )
        ),
        *((kind, True) for kind in ("fuse.ceph-fuse", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse")),
        *((kind, True) for kind in ("fuse.juicefs", "wekafs", "panfs", "orangefs")),
        *(
            (kind, False)
            for kind in ("ext4", "xfs", "tmpfs", "overlay", "fuse", "fuseblk", "fuse.lxcfs", "9p")
        ),
        ("autonfs", False),
    ],
)
def test_which_file_systems_several_machines_write(kind, network):
    assert network_of(Path("/x/y"), f"/dev/a / ext4 rw 0 0\nthere /x {kind} rw 0 0\n") == (
        kind if network else ""
    )


@pytest.mark.parametrize(
    ("mounts", "found"),
    [
        ("", ""),
        ("a / nfs rw\n", "nfs"),
        ("a /x nfs rw\nb /x ext4 rw\n", ""),
        ("b /x ext4 rw\na /x nfs rw\n", "nfs"),
        ("a /x/y nfs rw\nb /x ext4 rw\n", "nfs"),
        ("a /x/y/z nfs rw\n", ""),
        ("a /xy nfs rw\n", ""),
        ("a /x/y\n\na\n", ""),
    ],
)
def test_the_deepest_and_then_the_latest_mount_is_what_a_folder_lies_on(mounts, found):
    assert network_of(Path("/x/y"), mounts) == found


@pytest.mark.parametrize(
    ("name", "written"), [("a b", "a\\040b"), ("a\tb", "a\\011b"), ("a\nb", "a\\012b"), ("a\\b", "a\\134b")]
)
def test_names_of_mounts_are_read_as_the_kernel_writes_them(name, written):
    assert network_of(Path("/") / name / "c", f"there /{written} nfs rw\n") == "nfs"


class WindowsFolder:
    """A folder on Windows, where a mapped drive resolves to the share."""

    def __init__(self, path):
        self._path = path

    def resolve(self):
        return PureWindowsPath(self._path)


@pytest.mark.parametrize(
    ("path", "kind"), [(r"\\server\share\cache", "Windows share"), (r"C:\Users\me\cache", "")]
)
def test_a_share_of_windows_is_a_network_folder(path, kind):
    assert network_of(WindowsFolder(path), "") == kind


def test_a_folder_that_is_there_gets_no_file(tmp_path):
    make_folder(tmp_path / "a" / "b")
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == [".gitignore"]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
    make_folder(tmp_path / "a")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


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
        ("/home/me/.kbrel-cache", "nfs4"),
        ("/home/local disk/cache", ""),
        ("/mnt/x", "fuse.sshfs"),
    ],
)
def test_a_network_folder_is_known_by_its_file_system(folder, kind):
    assert network_of(Path(folder), MOUNTS) == kind


def test_a_network_folder_is_refused(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/x {tmp_path}/shared nfs rw 0 0\n")
    monkeypatch.setattr("pytest_kbrel.models.cache.store._MOUNTS", mounts)
    with pytest.raises(StoreError, match=r"is on a network folder \(nfs\).*--kb-use-cache"):
        Store(tmp_path / "shared" / "cache")
    assert not (tmp_path / "shared").exists()
    Store(tmp_path / "own").close()


def test_version_control_leaves_a_new_folder_alone_and_an_old_one_stays_as_it_is(tmp_path):
    Store(tmp_path / "new").close()
    assert (tmp_path / "new" / ".gitignore").read_text() == "*\n"
    Store(tmp_path).close()
    assert not (tmp_path / ".gitignore").exists()


def test_a_lock_ends_with_its_process(tmp_path):
    path = tmp_path / "run-1.lock"
    code = f"""
        import time
        from pathlib import Path
        from pytest_kbrel.models.cache.store import Lock
        assert Lock(Path({str(path)!r})).take()
        print("held", flush=True)
        time.sleep(60)
    """
    code = (
        textwrap.dedent(code).replace("assert Lock", "lock = Lock").replace(".take()", "; assert lock.take()")
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert is_held(path, patience=0)
        assert not Lock(path).take()
        process.kill()
    assert not is_held(path)
    assert not is_held(tmp_path / "none")
    lock = Lock(path)
    assert lock.take()
    assert is_held(path, patience=0)
    lock.free()
