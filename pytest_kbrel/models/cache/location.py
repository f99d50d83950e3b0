"""Folder of the cache: how it is made, which file systems are refused, and locks between its processes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pytest_kbrel.errors import StoreError

# File systems that another machine may write at the same time, as Linux names them.
_NETWORK = (
    *("nfs", "cifs", "smb", "afs", "ceph", "lustre", "gpfs", "beegfs", "gluster", "orangefs", "panfs"),
    *("wekafs", "fuse.sshfs", "fuse.gluster", "fuse.ceph", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse"),
    "fuse.juicefs",
)
_MOUNTS = Path("/proc/self/mounts")
_ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def make_folder(folder: Path) -> None:
    """Create a folder that version control ignores; one that exists is left as it is."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")


def network_of(folder: Path, mounts: str | None = None) -> str:
    """Return the name of a folder's file system if that is a network's, else ``""``.

    The folder need not exist. Linux says so in ``/proc/self/mounts`` (``mounts`` are its lines), Windows in
    the path of a share. Other systems do not say, and nothing is refused there.
    """
    path, kind = folder.resolve(), ""
    if path.drive.startswith("\\\\"):
        return "Windows share"
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ""
    depth = -1
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mount = Path(_unescape(fields[1]))
        # Of two mounts at one path the later one is seen.
        if path.is_relative_to(mount) and len(mount.parts) >= depth:
            depth, kind = len(mount.parts), fields[2]
    return kind if kind.startswith(_NETWORK) else ""


class Lock:
    """Lock file that one process at a time can hold; the kernel frees it when its holder dies.

    The file is empty. SQLite locks it, since SQLite can do so on every system.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def take(self, patience: float = 0.0) -> bool:
        """Take the lock within ``patience`` seconds; return False if another process holds it.

        Raises :class:`StoreError` if the file cannot be made or locked at all.
        """
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(self.path, timeout=patience, isolation_level=None)
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            if "locked" in str(error):
                return False
            raise StoreError(
                f"{self.path}: cannot be locked: {error}; give another folder with --kb-use-cache"
            ) from None
        self._connection = connection
        return True

    def free(self) -> None:
        """Release the lock if it is held. Its file stays: processes that wait for it have it open."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def is_held(path: Path, patience: float = 1.0) -> bool:
    """Return True if a living process holds the lock at ``path``.

    The lock is tried for ``patience`` seconds, since other processes may be trying it as well.
    """
    lock = Lock(path)
    if not path.exists():
        return False
    try:
        return not lock.take(patience)
    finally:
        lock.free()


def _unescape(text: str) -> str:
    for code, character in _ESCAPES.items():
        text = text.replace(code, character)
    return text
