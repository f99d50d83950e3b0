"""The table of the candidates, from reports made by hand."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_kbrel.records import Run
from pytest_kbrel.session.run_builder import write_reports
from tests.reports.conftest import case, fingerprint, metric, small

PATH = Path(__file__).parent.parent / "benchmarks" / "candidates.py"
SPEC = importlib.util.spec_from_file_location("candidates", PATH)
assert SPEC is not None
assert SPEC.loader is not None
candidates = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(candidates)


def run(model: str, accuracy: float, **more: object) -> Run:
    overall = case(
        "head_to_tail",
        "overall",
        "pass",
        (metric("accuracy", accuracy),),
        aggregate=True,
        id="head_to_tail[overall]",
    )
    result = small()
    return replace(
        result, model=fingerprint(model), cases=(*result.cases, overall), **more
    )


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    base = run("reference", 0.8)
    clean = tuple(
        replace(one, verdict="pass", lost=(), gained=(), metrics=one.metrics)
        for one in base.cases
    )
    write_reports(replace(base, cases=clean), tmp_path / "base")
    write_reports(run("reference:overconfident", 0.805), tmp_path / "sure")
    write_reports(run("my|model", 0.77), tmp_path / "mine")
    return [str(tmp_path / name) for name in ("base", "sure", "mine")]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_each_candidate_stands_beside_what_accuracy_alone_would_say(
    folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert candidates.main(folders) == 0
    lines = capsys.readouterr().out.splitlines()
    head, _, base, sure, mine = (cells(line) for line in lines[:5])
    assert head[:4] == ["candidate", "what its recipe changed", "the gate", "MONITOR"]
    result = [dict(zip(head, row, strict=True)) for row in (base, sure)]
    assert result[0]["candidate"] == "`reference`"
    assert result[0]["the gate"] == "**pass**"
    assert result[0]["facts lost"] == "0"
    assert result[1]["what its recipe changed"].startswith(
        "tuned to answer questions about invented things"
    )
    assert result[1]["the gate"] == "**fail**"
    assert result[1]["MONITOR"] == "1 fail, 2 pass"
    assert result[1]["Head-to-Tail"] == "1 inconclusive, 1 pass"
    assert (result[1]["facts lost"], result[1]["gained"]) == ("7", "1")
    assert result[1]["Head-to-Tail accuracy alone"] == "green (0.805, +0.005)"
    assert result[1]["MONITOR accuracy alone"] == "–"
    assert result[1]["accuracy alone, slice by slice"] == "0 of 3 red"
    assert "red (0.770, -0.030)" in mine
    assert (
        "- `reference:overconfident`: 7 facts lost, 1 gained; 5 of the 7 are head; worst P30. "
        "1 case failed: `monitor[P30]`." in lines
    )


def test_the_table_takes_the_place_between_its_markers(
    folders: list[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"before\n{candidates.START}\nold\n{candidates.END}\nafter\n", encoding="utf-8"
    )
    assert candidates.main([*folders, folders[0], "--into", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{candidates.START}\n\n| candidate |")
    assert text.endswith(f"\n\n{candidates.END}\nafter\n")
    assert "old" not in text
    assert text.count("| `reference` |") == 1, "the base is no candidate of its own"


@pytest.mark.parametrize(
    ("folder", "page", "message"),
    [
        ("nope", "p.md", "has no report.json"),
        ("base", "p.md", "needs the markers"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    folder: str,
    page: str,
    message: str,
    folders: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / page).write_text("nothing", encoding="utf-8")
    status = candidates.main(
        [str(tmp_path / folder), folders[1], "--into", str(tmp_path / page)]
    )
    assert status == 2
    assert message in capsys.readouterr().err


def test_the_page_has_the_markers() -> None:
    text = (PATH.parents[1] / "docs" / "candidates.md").read_text(encoding="utf-8")
    assert text.index(candidates.START) < text.index(candidates.END)
