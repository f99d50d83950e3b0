from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel import bundled
from pytest_kbrel.baselines import PublishedCase, baseline_directory, read_baseline
from pytest_kbrel.baselines.published import published_names
from pytest_kbrel.errors import BaselineError
from pytest_kbrel.suites.names import METRICS, OVERALL_METRICS, SLICE_METRICS, slice_kind
from tests.golden import publish
from tests.golden.publish import SHIPPED

NAMES = published_names([bundled.baselines()])


def test_the_files_are_what_the_tables_give() -> None:
    made = publish.files()
    shipped = {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.rglob("*") if path.is_file()}
    assert shipped == made.keys()
    for path, text in made.items():
        assert (SHIPPED / path).read_text(encoding="utf-8") == text, path


def test_every_model_of_the_papers_is_there() -> None:
    counts = [
        sum(name.startswith(f"published/{paper}/") for name in NAMES)
        for paper in ("monitor", "reliable-kb", "head-to-tail")
    ]
    assert counts == [12, 26 * 3, 14]


@pytest.mark.parametrize("name", NAMES)
def test_each_is_read_and_has_our_own_metrics(name: str, tmp_path: Path) -> None:
    found = read_baseline(name, tmp_path)
    assert found.paper
    assert found.model is None
    for case in found.cases.values():
        assert isinstance(case, PublishedCase)
        probe, _, rest = case.id.removesuffix("]").partition("[")
        kind = slice_kind(probe, rest)  # type: ignore[arg-type]
        known = METRICS if rest == "overall" else SLICE_METRICS[kind]
        assert case.figures
        for figure in case.figures:
            assert figure.source.startswith(f"{found.paper}, Table ")
            # Of the aggregates some figures are there for kbrel compare only.
            assert figure.name in known
            assert known[figure.name].low <= figure.value <= known[figure.name].high
        assert set(case.members) < found.cases.keys()
        assert bool(case.members) is (rest == "overall")
    overall = [case for case in found.cases.values() if isinstance(case, PublishedCase) and case.members]
    assert len(overall) == 1
    gated = {figure.name for figure in overall[0].figures}
    assert len(gated & OVERALL_METRICS[overall[0].id.partition("[")[0]].keys()) >= 5  # type: ignore[index]


def test_some_figures_as_the_papers_print_them(tmp_path: Path) -> None:
    def of(name: str, case_id: str) -> dict[str, tuple[float, int]]:
        case = read_baseline(name, tmp_path).case(f"any/suite.kb.yaml::{case_id}")
        assert isinstance(case, PublishedCase)
        return {figure.name: (figure.value, figure.n) for figure in case.figures}

    vicuna = of("published/monitor/vicuna-7b", "monitor[P37]")
    assert vicuna["monitor"][0] == read_row("monitor", 11, "Vicuna-7b", "P37", "monitor")
    llama = of("published/reliable-kb/llama-2-7b/four-shot", "reliability[seen-four-shot]")
    assert (llama["cr"], llama["c_correct"]) == ((0.4203, 3000), (0.6707, 0))
    chatgpt = of("published/head-to-tail/chatgpt", "head_to_tail[overall]")
    assert (chatgpt["accuracy"], chatgpt["accuracy_f1"]) == ((0.203, 18171), (0.174, 0))
    assert chatgpt["gap"][0] == pytest.approx(0.294 - 0.095)


def read_row(paper: str, table: int, model: str, relation: str, metric: str) -> float:
    from tests.golden import figures_of

    (value,) = [
        value
        for row, value in figures_of(f"{paper}.csv", table)
        if (row["model"], row["relation"], row["metric"]) == (model, relation, metric)
    ]
    return value


def test_cases_are_found_in_any_suite(tmp_path: Path) -> None:
    found = read_baseline("published/monitor/vicuna-7b", tmp_path)
    assert found.case("suites/world.kb.yaml::monitor[P37]") is found.case("monitor[P37]") is not None
    assert found.case("suites/world.kb.yaml::monitor[P36]") is None


def test_the_projects_own_files_come_first(tmp_path: Path) -> None:
    shipped = json.loads((SHIPPED / "monitor" / "vicuna-7b.json").read_text(encoding="utf-8"))
    folder = tmp_path / "baselines" / "published" / "monitor"
    folder.mkdir(parents=True)
    (folder / "vicuna-7b.json").write_text(json.dumps({**shipped, "paper": "ours"}), encoding="utf-8")
    assert read_baseline("published/monitor/vicuna-7b", tmp_path).paper == "ours"
    assert read_baseline("published/monitor/vicuna-13b", tmp_path).paper != "ours"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "published/monitor/vicua-7b",
            r"published/monitor/\.\.\..*did you mean 'published/monitor/vicuna-7b'",
        ),
        (
            "published/reliable-kb/llama-2-7b",
            r"allowed: published/reliable-kb/llama-2-7b/four-shot, published/",
        ),
        ("published", r"no published figures are called 'published'"),
        ("published/", r"no published figures are called 'published/'"),
    ],
)
def test_a_name_that_is_none_is_answered_with_those_there_are(
    name: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(BaselineError, match=message):
        read_baseline(name, tmp_path)


def broken(change: Callable[[dict[str, Any]], object]) -> str:
    found = json.loads((SHIPPED / "monitor" / "vicuna-7b.json").read_text(encoding="utf-8"))
    change(found)
    return json.dumps(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "found schema_version None"),
        (broken(lambda f: f.update(schema_version=2)), "found schema_version 2; allowed: at most 1"),
        (broken(lambda f: f.pop("paper")), "KeyError: 'paper'"),
        (broken(lambda f: f["cases"]["monitor[P37]"].pop("figures")), "KeyError: 'figures'"),
        (
            broken(lambda f: f["cases"]["monitor[P37]"]["figures"]["monitor"].update(value="much")),
            "could not convert",
        ),
        (
            broken(lambda f: f["cases"]["monitor[P37]"]["figures"]["monitor"].update(value=1.5, n=3)),
            "monitor of monitor",
        ),
    ],
)
def test_a_file_that_is_none_is_named(text: str, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "baselines" / "published" / "monitor"
    folder.mkdir(parents=True)
    (folder / "mine.json").write_text(text, encoding="utf-8")
    with pytest.raises(BaselineError, match=message) as caught:
        read_baseline("published/monitor/mine", tmp_path)
    assert str(folder / "mine.json") in str(caught.value)
    assert "allowed" in str(caught.value)


def test_no_run_is_blessed_as_a_papers_figures(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="which no run replaces"):
        baseline_directory("published/monitor/vicuna-7b", tmp_path)
