"""The folder of the store: how it is made, and whether a database is safe there."""

from __future__ import annotations

from pathlib import Path

# File systems that another machine may write at the same time, as Linux names them.
_NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "afs",
    "ceph",
    "lustre",
    "gpfs",
    "beegfs",
    "gluster",
    "fuse.sshfs",
    "fuse.gluster",
    "fuse.ceph",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.gcsfuse",
    "fuse.juicefs",
)
_MOUNTS = Path("/proc/self/mounts")
_ESCAPED = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def make_folder(folder: Path) -> None:
    """Make a folder that version control leaves alone; one that is there already stays as it is."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")


def network_of(folder: Path, mounts: str | None = None) -> str:
    """Return the file system of a folder where that is a network's, else ``""``; the folder need not exist.

    Only Linux tells (``mounts`` are the lines of ``/proc/self/mounts``); elsewhere nothing is found.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ""
    place, kind = folder.resolve(), ""
    depth = -1
    for line in mounts.splitlines():
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        where = Path(_plain(parts[1]))
        # Of two mounts at one place the later one is seen.
        if place.is_relative_to(where) and len(where.parts) >= depth:
            depth, kind = len(where.parts), parts[2]
    return kind if kind.startswith(_NETWORK) else ""


def _plain(text: str) -> str:
    for code, character in _ESCAPED.items():
        text = text.replace(code, character)
    return text
