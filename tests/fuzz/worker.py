"""The process in which damaged input is run: real sessions of pytest, one by one, under a limit of memory.

It reads a :class:`Job` from its standard input and writes a :class:`Done` to its standard output, each
pickled and behind its length, until its input ends. What a session prints is in the answer.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import io
import os
import pickle
import resource
import shutil
import struct
import sys
import tempfile
import warnings
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from tests.fuzz.raw_server import RawServer, Said

MEMORY = 1 << 30
# In place of the exit code of a session that was not needed.
READ_ONLY = 2
# Most of a small session's time went into plugins that have nothing to do here, into looking for garbage, and
# into the traceback of pytest's own interruption, which it makes and does not show.
_UNUSED = (
    *(
        "cacheprovider",
        "hypothesispytest",
        "anyio",
        "xdist",
        "unraisableexception",
        "threadexception",
        "doctest",
    ),
    *(
        "junitxml",
        "pastebin",
        "setuponly",
        "setupplan",
        "stepwise",
        "legacypath",
        "debugging",
        "faulthandler",
    ),
)
_ARGS = (
    *("--rootdir=.", "--color=no", "--capture=sys", "--continue-on-collection-errors"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    *(word for name in _UNUSED for word in ("-p", f"no:{name}")),
)
_LENGTH = struct.Struct(">Q")


@dataclass(frozen=True)
class Job:
    """Files by their path in an empty folder, and the arguments of a session there.

    ``said`` is what a server on loopback answers; ``{url}`` in an argument then is its address. ``suite`` is
    read first: where it is refused as it should be, most jobs have no session. ``keep`` asks for the files
    that are there after the session.
    """

    # Hypothesis takes a long time over long texts for people.
    files: dict[str, bytes] = field(repr=False)
    args: tuple[str, ...]
    said: Said | None = None
    suite: str = ""
    keep: bool = False


@dataclass(frozen=True)
class Done:
    """How a session ended: exit code, what it printed, its report as text, and files if they were asked for.

    ``code`` is ``None`` where an exception left pytest, whose traceback then is the text.
    """

    code: int | None
    text: str
    report: str = ""
    files: dict[str, bytes] = field(default_factory=dict)


def send(stream: BinaryIO, what: Job | Done | None) -> None:
    """Write one message."""
    data = pickle.dumps(what)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read one message; ``EOFError`` where there is none."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    return pickle.loads(stream.read(_LENGTH.unpack(head)[0]))


def run(job: Job) -> Done:
    """Run a session of pytest over the files of a job, in this process."""
    before = Path.cwd()
    folder = Path(tempfile.mkdtemp(prefix="kbrel-fuzz-"))
    try:
        for name, data in job.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        os.chdir(folder)
        with contextlib.ExitStack() as stack:
            args = job.args
            if job.said:
                server = stack.enter_context(RawServer(job.said))
                args = tuple(arg.replace("{url}", server.url) for arg in args)
            refused = _refused(folder / job.suite) if job.suite else ""
            code, text = (READ_ONLY, refused) if refused else _session(args)
        report = folder / "kbrel-report" / "report.json"
        report_text = report.read_text(encoding="utf-8") if report.is_file() else ""
        written = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in (folder.rglob("*") if job.keep else ())
            if path.is_file()
        }
        return Done(code=code, text=text, report=report_text, files=written)
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)


def _refused(suite: Path) -> str:
    """Return why a suite is refused; nothing for one in eight, or where reading it ends in another way."""
    from pytest_kbrel.errors import SuiteError
    from pytest_kbrel.suites import load_suite

    try:
        load_suite(suite)
    except SuiteError as error:
        return (
            ""
            if zlib.crc32(str(error).encode("utf-8", "replace")) % 8 == 0
            else str(error)
        )
    except Exception:
        return ""  # a session shows what becomes of it
    return ""


def _session(args: tuple[str, ...]) -> tuple[int | None, str]:
    import traceback

    import pytest

    out = io.TextIOWrapper(
        io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True
    )
    code: int | None
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        warnings.catch_warnings(),
    ):
        try:
            code = int(pytest.main([*_ARGS, *args]))
        except BaseException:
            code = None
            traceback.print_exc(file=out)
    text = out.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
    return code, text


def main() -> None:
    """Serve jobs, behind one session that loads what sessions need; what is more than that has a limit."""
    from tests.fuzz.targets import warming

    channel = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warm = run(warming())
    gc.collect()
    gc.freeze()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    send(channel, warm)
    with contextlib.suppress(EOFError):
        while True:
            job = receive(sys.stdin.buffer)
            faulthandler.dump_traceback_later(9.0)
            done = run(job)
            faulthandler.cancel_dump_traceback_later()
            send(channel, done)
