from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel import resources
from pytest_kbrel.baselines import (
    read_baseline,
)
from pytest_kbrel.baselines.reading import (
    check_published,
    published_names,
)
from pytest_kbrel.errors import BaselineError
from tests.golden import publish
from tests.golden.publish import SHIPPED

NAMES = published_names([resources.baselines()])


def test_the_files_are_what_the_tables_give() -> None:
    made = publish.files()
    shipped = {
        path.relative_to(SHIPPED).as_posix()
        for path in SHIPPED.rglob("*")
        if path.is_file()
    }
    assert shipped == made.keys()
    for path, text in made.items():
        assert (SHIPPED / path).read_text(encoding="utf-8") == text, path


def test_every_model_of_the_papers_is_there() -> None:
    counts = [
        sum(name.startswith(f"published/{paper}/") for name in NAMES)
        for paper in ("monitor", "reliable-kb", "head-to-tail")
    ]
    assert counts == [12, 26 * 3, 14]


def test_some_figures_as_the_papers_print_them(tmp_path: Path) -> None:
    def of(name: str, case_id: str) -> dict[str, tuple[float, int]]:
        case = read_baseline(name, tmp_path).published[case_id]
        return {figure.name: (figure.value, figure.n) for figure in case.figures}

    vicuna = of("published/monitor/vicuna-7b", "monitor[P37]")
    assert vicuna["monitor"][0] == read_row(
        "monitor", 11, "Vicuna-7b", "P37", "monitor"
    )
    llama = of(
        "published/reliable-kb/llama-2-7b/four-shot", "reliability[known-four-shot]"
    )
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
    result = json.loads(
        (SHIPPED / "monitor" / "vicuna-7b.json").read_text(encoding="utf-8")
    )
    change(result)
    return json.dumps(result)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "found schema_version None"),
        (
            broken(lambda f: f.update(schema_version=2)),
            "found schema_version 2; allowed: at most 1",
        ),
        (broken(lambda f: f.pop("paper")), "KeyError: 'paper'"),
        (
            broken(lambda f: f["cases"]["monitor[P37]"].pop("figures")),
            "KeyError: 'figures'",
        ),
        (
            broken(
                lambda f: f["cases"]["monitor[P37]"]["figures"]["monitor"].update(
                    value="much"
                )
            ),
            "could not convert",
        ),
        (
            broken(
                lambda f: f["cases"]["monitor[P37]"]["figures"]["monitor"].update(
                    value=1.5, n=3
                )
            ),
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


WHOLE: dict[str, Any] = {
    "schema_version": 1,
    "paper": "Somebody et al.",
    "model": "Small",
    "cases": {"monitor[P37]": {"figures": {"monitor": {"value": 1.5, "table": "2"}}}},
}


def own_file(root: Path, name: str, **changes: Any) -> Path:
    path = root / "baselines" / "published" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**WHOLE, **changes}), encoding="utf-8")
    return path


def test_a_paper_that_has_none_of_the_cases_asked_is_refused(tmp_path: Path) -> None:
    cases = {
        name: {"figures": {}}
        for name in ("monitor[P1]", "monitor[P2]", "head_to_tail[a]", "monitor[P3]")
    }
    own_file(tmp_path, "zoo/small", cases=cases)
    result = read_baseline("published/zoo/small", tmp_path)
    check_published(result, "NAME", [])
    check_published(result, "NAME", ["reliability[x]", "monitor[P3]"])
    with pytest.raises(BaselineError) as caught:
        check_published(result, "NAME", ["c", "a", "b", "d"])
    assert str(caught.value) == (
        "--kb-baseline: NAME has none of the cases of the suites (c, a, b, ...); found in it: head_to_tail, "
        "monitor cases (head_to_tail[a], monitor[P1], monitor[P2], ...); "
        "allowed: figures of a paper that has some of them, or a blessed run"
    )
    with pytest.raises(BaselineError, match=r"cases of the suites \(c, a, b\); "):
        check_published(result, "NAME", ["c", "a", "b"])
