"""Runs of other tools in an empty folder, and ``kbrel compare`` over them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_kbrel.cli import main

DATE = "2026-11-01T10-00-00.1"


class Compared(NamedTuple):
    """What a call left: exit code, both streams, and the JSON document."""

    code: int
    out: str
    err: str
    document: dict[str, Any]

    @property
    def cases(self) -> dict[str, dict[str, Any]]:
        """The cases of the only candidate, by name."""
        (paired,) = self.document["paired"]
        return {case["id"].partition("::")[2]: case for case in paired["cases"]}

    @property
    def gates(self) -> dict[str, str]:
        """The verdicts of all gates by case and metric."""
        return {
            f"{name} {gate['metric']}": gate["verdict"]
            for name, case in self.cases.items()
            for gate in case["gates"]
        }


Compare = Callable[..., Compared]


@pytest.fixture
def compare(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Compare:
    """Call the command with --exit-code in an empty folder; texts are on one line."""
    monkeypatch.chdir(tmp_path)

    def compare(*arguments: object) -> Compared:
        given = [*map(str, arguments), "--exit-code", "--json=out.json", "--force"]
        Path("out.json").unlink(missing_ok=True)
        code = main(["compare", *given])
        out, err = (" ".join(text.split()) for text in capsys.readouterr())
        written = Path("out.json")
        document = json.loads(written.read_text()) if written.exists() else {}
        return Compared(code, out, err, document)

    return compare


def write(name: str, rows: Iterable[dict[str, Any]]) -> str:
    """Write rows as JSON lines; return the name."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def samples(
    folder: str,
    scores: Iterable[object],
    *,
    task: str = "t",
    metric: str = "exact_match",
    date: str = DATE,
    **more: Any,
) -> str:
    """Write the samples of a task as lm_eval does; return the folder."""
    rows = (
        {
            "doc_id": at,
            "doc": {"question": f"q{at}?", "subject": "ab"[at % 2]},
            "target": "4",
            "filter": "none",
            "filtered_resps": ["4"],
            "metrics": [metric, "parts"],
            metric: score,
            "parts": [1, 2],
            **more,
        }
        for at, score in enumerate(scores)
    )
    write(f"{folder}/samples_{task}_{date}.jsonl", rows)
    return folder


def results(folder: str, *, date: str = DATE, **content: Any) -> str:
    """Write the results file of a run; return its name."""
    path = Path(folder, f"results_{date}.json")
    path.write_text(json.dumps(content))
    return str(path)
