"""Which machine uses a store's folder: two at once would spoil its file, and neither would be told."""

from __future__ import annotations

import functools
import json
import platform
import time
import uuid
from pathlib import Path

from pytest_kbrel.errors import StoreError
from pytest_kbrel.untrusted import read_json

RECORD = "owner.json"
# In seconds: how often a machine that uses the folder says so, and how long another one listens first.
BEAT = 2.0
SILENCE = 5.0
# Seconds after which a sign of life is none, whatever the two machines' clocks say.
_LONG_AGO = 600.0
# Seconds after which a machine that took the folder looks whether another did so at the same moment.
_BOTH = 0.2
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Owner:
    """One process's part in saying that this machine uses ``folder``.

    The machine is known by its running kernel, so that containers on one machine count as one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / RECORD
        self._held = False
        self._until = 0.0

    def hold(self) -> bool:
        """Say that this machine uses the folder; to be called before each use, and cheap.

        Tell whether that was said now: most times the last time is not long enough ago.

        Where another machine left its sign, it is listened for first. Raises :class:`StoreError` where that
        one is alive, and where it has taken the folder since.
        """
        if time.monotonic() < self._until:
            return False
        found = self._read()
        mine = found.get("machine", machine()) == machine()
        if not mine and (self._held or self._is_alive(found)):
            raise StoreError(
                f"{self._folder}: another machine uses this folder, {str(found.get('host'))[:60]!r}, and a "
                "file that two machines write is not safe; give a folder on a local disk with --kb-use-cache"
            )
        self._write(needed=not found or not mine)
        self._held = True
        if not mine:
            time.sleep(_BOTH)
            self.hold()
        self._until = time.monotonic() + BEAT
        return True

    def _is_alive(self, found: dict[str, object]) -> bool:
        at = found.get("at")
        if isinstance(at, int | float) and abs(time.time() - at) > _LONG_AGO:
            return False
        # Clocks of two machines differ, so that only a change is a sign of life.
        end = time.monotonic() + SILENCE
        while time.monotonic() < end:
            time.sleep(SILENCE / 10)
            now = self._read()
            if now != found:
                # Another process of this machine has listened long enough, and taken the folder.
                return now.get("machine") != machine()
        return False

    def _read(self) -> dict[str, object]:
        try:
            found = read_json(self._path)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, *, needed: bool) -> None:
        beat = uuid.uuid4().hex
        said = {"machine": machine(), "host": platform.node(), "at": time.time(), "beat": beat}
        scratch = self._path.with_name(f"{RECORD}.{beat}")
        try:
            scratch.write_text(json.dumps(said), encoding="utf-8")
            scratch.replace(self._path)
        except PermissionError:
            # Windows: another process of this machine reads it just now.
            if needed:
                raise


@functools.cache
def machine() -> str:
    """Return what tells this machine from others."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        node = uuid.getnode()
        # A made-up address, another one in each process, has this bit.
        return platform.node() + ("" if node >> 40 & 1 else f"-{node:012x}")
