"""``kbrel init``: a project with a suite, its baseline, settings of pytest and git, and a workflow of CI."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from pytest_kbrel import resources
from pytest_kbrel.cli.arguments import (
    Options,
    argument,
    command,
    print_result,
)
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
_SETTING = f"kb_baseline = {BASELINE}"
# Beside any of these a new pytest.ini might hide other settings.
_READ_BY_PYTEST = (
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
# Lines of .gitignore; others do as well that differ in slashes and stars.
_IGNORED = (f"{DEFAULT_OUTPUT}*/", f"{DEFAULT_CACHE}/")


def _project() -> Iterator[tuple[str, Mapping[str, bytes]]]:
    """Yield the name of each file to write, with its content, and of each folder, with its files."""
    for name in ("world.kb.yaml", "quick.kb.yaml", "conftest.py"):
        text = (resources.suites() / name).read_text(encoding="utf-8")
        text = text.replace(resources.SCHEMA_IN_CLONE, _SCHEMA, 1)
        yield f"suites/{name}", {"": text.encode()}
    for name, folder in (
        ("suites/world", resources.suites() / "world"),
        ("baselines/reference", resources.baselines() / "reference"),
    ):
        files = filter(Path.is_file, folder.rglob("*"))
        yield name, {str(file.relative_to(folder)): file.read_bytes() for file in files}
    yield f"suites/{_SCHEMA}", {"": resources.schema("suite").encode()}
    yield "pytest.ini", {"": f"[pytest]\n{_SETTING}\n".encode()}
    yield ".gitignore", {"": "".join(f"{line}\n" for line in _IGNORED).encode()}
    yield _WORKFLOW, {"": resources.workflow().encode()}


def _lacking(present: Path, name: str) -> list[str]:
    """Return the lines of ours that a file lacks which is there already."""
    text = present.read_text("utf-8", errors="replace")
    if name == ".gitignore":
        return [line for line in _IGNORED if line.strip("/*") not in text]
    quoted = _SETTING.replace(BASELINE, f'"{BASELINE}"')
    line = quoted if present.suffix == ".toml" else _SETTING
    return [] if "kb_baseline" in text else [line]


@command(
    "init",
    "make a project: a suite, its baseline, settings and a workflow; nothing is overwritten",
    argument(
        "directory",
        "its folder (default: .)",
        Path,
        metavar="DIR",
        nargs="?",
        default=Path(),
    ),
)
def _run(options: Options) -> int:
    directory: Path = options.directory
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(
            f"{directory}: is a file; allowed: a folder, or one to be made"
        )
    written: list[Path] = []
    left_alone: dict[str, str] = {}
    to_add: dict[str, list[str]] = {}
    with ExitStack() as opened:
        for name, files in _project():
            names = _READ_BY_PYTEST if name == "pytest.ini" else (name,)
            paths = [directory / one for one in names]
            present = next(filter(os.path.lexists, paths), None)
            if present is None:
                written.append(paths[0])
                for inner, data in files.items():
                    target = paths[0] / inner
                    stream = opened.enter_context(new_file(target, force=True))
                    stream.buffer.write(data)
                    # A full disk shows here, before any file is in its place.
                    stream.flush()
            elif name in ("pytest.ini", ".gitignore"):
                if lines := _lacking(present, name):
                    to_add[str(present)] = lines
                else:
                    left_alone[str(present)] = "has the lines already"
            else:
                left_alone[str(present)] = "exists already"
    document = {
        "directory": directory,
        "files": written,
        "left_alone": left_alone,
        "to_add": to_add,
        "commands": [command for command, _ in NEXT],
    }
    lines = [f"written: {path}" for path in written]
    lines += [f"left alone: {path} {why}" for path, why in left_alone.items()]
    lines += [
        f"please add to {path}: {', '.join(more)}" for path, more in to_add.items()
    ]
    if (workflow := directory / _WORKFLOW) in written:
        lines.append(f"please fill in OWNER and ./checkpoint: {workflow}")
        if _is_below_a_repository(directory):
            lines.append(_MOVE)
    width = max(len(command) for command, _ in NEXT)
    lines.append("next:" if directory == Path() else f"next, in {directory}:")
    lines += [f"  {command:{width}}  # {why}" for command, why in NEXT]
    print_result(options, document, lines)
    return 0


def _is_below_a_repository(directory: Path) -> bool:
    """Return True if a folder lies in a git repository and is not its root."""
    here = directory.resolve()
    # In a worktree or submodule it is a file.
    return not (here / ".git").exists() and any(
        (folder / ".git").exists() for folder in here.parents
    )
