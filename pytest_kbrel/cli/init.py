"""``kbrel init``: a project with a suite, its baseline, settings of pytest and git, and a workflow of CI."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from pytest_kbrel import resources
from pytest_kbrel.cli.arguments import Commands, finish, print_result
from pytest_kbrel.outputs import new_file
from pytest_kbrel.words import DEFAULT_CACHE, DEFAULT_OUTPUT

BASELINE = "prod"
# What is typed next, and why.
NEXT = (
    (
        "pytest suites/quick.kb.yaml --kb-model=./candidate --kb-baseline-model=./prod",
        "gate; chat models need --kb-apply-chat-template",
    ),
    (
        "pytest suites --kb-model=reference --kb-baseline=reference",
        "or try it with the model that comes along",
    ),
    (
        f"pytest suites --kb-model=./prod --kb-baseline-update={BASELINE}",
        "later: record what you ship today",
    ),
    (
        f"pytest suites --kb-model=./candidate --kb-baseline={BASELINE}",
        "and gate without asking it again",
    ),
)
_WORKFLOW = ".github/workflows/kbrel.yml"
_MOVE = "GitHub reads workflows only in .github/workflows of the repository's root: move it there"
_SCHEMA = "suite.schema.json"
# Lines of .gitignore; others do as well that differ in slashes and stars.
_IGNORED = (f"{DEFAULT_OUTPUT}*/", f"{DEFAULT_CACHE}/")


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "init",
        help="make a project: a suite, its baseline, settings and a workflow; nothing is overwritten",
    )
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=Path,
        nargs="?",
        default=Path(),
        help="its folder (default: .)",
    )
    finish(parser, _run)


@dataclasses.dataclass
class _Work:
    """What was done in ``directory``: files that were written, lines that were added to others, and the rest.

    ``present`` were there and were left as they were, each with the reason. ``to_add`` are lines that the
    user must add by hand. Files are ``opened`` until all are written.
    """

    directory: Path
    opened: ExitStack
    files: list[Path] = dataclasses.field(default_factory=list)
    added: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    present: dict[str, str] = dataclasses.field(default_factory=dict)
    to_add: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    def copy(self, source: Path, name: str) -> None:
        """Copy a folder."""
        files = filter(Path.is_file, source.rglob("*"))
        self._write(
            name, {str(file.relative_to(source)): file.read_bytes() for file in files}
        )

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        self._write(name, {"": text.encode()})

    def _write(self, name: str, files: Mapping[str, bytes]) -> None:
        """Write a file without a name, or the files of a folder, unless something is there."""
        target = self.directory / name
        if os.path.lexists(target):
            self.present[str(target)] = "exists already"
            return
        self.files.append(target)
        for inner, data in files.items():
            self._put(target / inner, data)

    def _put(self, path: Path, data: bytes) -> None:
        stream = self.opened.enter_context(new_file(path, force=True))
        stream.buffer.write(data)
        # A full disk shows here, before any file is in its place.
        stream.flush()

    def ignore(self) -> None:
        """Add what runs leave behind to .gitignore."""
        target = self.directory / ".gitignore"
        if not target.exists():
            self.write(target.name, "".join(f"{line}\n" for line in _IGNORED))
            return
        data = target.read_bytes()
        present = {line.strip(b"/* \t") for line in data.splitlines()}
        lines = [line for line in _IGNORED if line.strip("/*").encode() not in present]
        if not lines:
            self.present[str(target)] = "has the lines already"
            return
        end = b"\r\n" if b"\r\n" in data else b"\n"
        gap = end if data and not data.endswith(b"\n") else b""
        self._put(target, data + gap + b"".join(line.encode() + end for line in lines))
        self.added[str(target)] = lines

    def set_ini_key(self, path: Path, text: str) -> None:
        """Name the baseline in a new pytest.ini, or say what to add to the file that is there."""
        if not text:
            self.present[str(path)] = "names kb_baseline already"
        elif path.exists():
            self.to_add[str(path)] = text.splitlines()
        else:
            self.write(path.name, text)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.cli.ini_file import line_to_add

    directory: Path = options.directory
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(
            f"{directory}: is a file; allowed: a folder, or one to be made"
        )
    # First: nothing is written beside a file that pytest refuses.
    path, line = line_to_add(directory, "kb_baseline", BASELINE)
    with ExitStack() as opened:
        work = _Work(directory, opened)
        for name in ("world.kb.yaml", "quick.kb.yaml", "conftest.py"):
            text = (resources.suites() / name).read_text(encoding="utf-8")
            work.write(
                f"suites/{name}", text.replace(resources.SCHEMA_IN_CLONE, _SCHEMA, 1)
            )
        work.copy(resources.suites() / "world", "suites/world")
        work.write(f"suites/{_SCHEMA}", resources.schema("suite"))
        work.copy(resources.baselines() / "reference", "baselines/reference")
        work.set_ini_key(path, line)
        work.ignore()
        work.write(_WORKFLOW, resources.workflow())
    document = {
        "directory": directory,
        "files": work.files,
        "added": work.added,
        "left_alone": work.present,
        "to_add": work.to_add,
        "commands": [command for command, _ in NEXT],
    }
    print_result(options, document, _lines(work))
    return 0


def _is_below_a_repository(directory: Path) -> bool:
    """Return True if a folder lies in a git repository and is not its root."""
    here = directory.resolve()
    # In a worktree or submodule it is a file.
    return not (here / ".git").exists() and any(
        (folder / ".git").exists() for folder in here.parents
    )


def _lines(work: _Work) -> list[str]:
    lines = [f"written: {path}" for path in work.files]
    lines += [
        f"added to {path}: {' '.join(added)}" for path, added in work.added.items()
    ]
    lines += [f"left alone: {path} {why}" for path, why in work.present.items()]
    lines += [
        f"please add to {path}: {' '.join(added)}"
        for path, added in work.to_add.items()
    ]
    if (workflow := work.directory / _WORKFLOW) in work.files:
        lines.append(f"please fill in OWNER and ./checkpoint: {workflow}")
        if _is_below_a_repository(work.directory):
            lines.append(_MOVE)
    width = max(len(command) for command, _ in NEXT)
    there = "" if work.directory == Path() else f", in {work.directory}"
    return [
        *lines,
        f"next{there}:",
        *(f"  {command:{width}}  # {why}" for command, why in NEXT),
    ]
