"""Models side by side, on figures made by hand: what is shown, what is not alike, what is correlated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.cli.compare.models import (
    ComparedModel,
    _recorded,
    case_of,
    correlated_points,
    figure_tables,
    read_models,
    run_settings,
    twins,
)
from pytest_kbrel.cli.compare.pairing import read_outcomes
from pytest_kbrel.cli.compare.side_by_side import side_by_side
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.reports.comparison import groups


def correlations_of(models):
    return [
        (one.within, of)
        for one in correlated_points(models)
        for of in (one.pearson, one.spearman)
    ]


SUITE = "w.kb.yaml"
HEAD = "head_to_tail[a]"


def model(name: str = "a", cases: Any = None, **more: Any) -> ComparedModel:
    figures = cases or {(SUITE, HEAD): {"accuracy": 0.5}}
    about = more.pop("recorded", {})
    made = {key: case_of(key, of, **about) for key, of in figures.items()}
    return ComparedModel(name=name, about="", cases=made, **more)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({}, {}, ("", "")),
        ({"judge": "rules"}, {"judge": "rules"}, ("", "")),
        ({"judge": "rules"}, {"judge": "openai/j"}, ("judge rules", "judge openai/j")),
        # These change nothing of what is asked.
        # A paper says nothing of its runs.
    ],
)
def test_what_of_the_settings_of_two_runs_can_change_figures(
    first: dict[str, str], second: dict[str, str], expected: tuple[str, str] | None
) -> None:
    texts = run_settings([model(settings=tuple(of.items())) for of in (first, second)])
    assert texts == (
        expected or ("apply_chat_template true", "apply_chat_template false")
    )


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({}, {}, ""),
        (
            {"recorded": {"settings": (("choices", "3"),)}},
            {"recorded": {"settings": (("choices", "3"),)}},
            "",
        ),
        (
            {"settings": (("judge", "rules"),)},
            {"settings": (("judge", "openai/j"),)},
            "judges rules, openai/j",
        ),
    ],
)
def test_in_what_a_case_was_not_asked_alike(
    first: dict[str, Any], second: dict[str, Any], expected: str
) -> None:
    (table,) = figure_tables([model("a", **first), model("b", **second)])
    assert (table.case, table.differing) == (HEAD, expected)


def test_figures_that_two_models_have_are_shown_with_gaps_where_others_have_none() -> (
    None
):
    models = [
        model("a", {(SUITE, HEAD): {"accuracy": 0.0, "f1": 0.1, "em": None}}),
        model("b", {(SUITE, HEAD): {"accuracy": 0.5, "em": 0.2}}),
        model(
            "c", {(SUITE, HEAD): {"f1": 0.3}, (SUITE, "head_to_tail[b]"): {"f1": 0.3}}
        ),
    ]
    (table,) = figure_tables(models)
    assert table.rows == (("accuracy", (0.0, 0.5, None)), ("f1", (0.1, None, 0.3)))
    with pytest.raises(KbrelError, match="no figure is in two of a, c; allowed"):
        figure_tables([model("a", {(SUITE, HEAD): {"em": 0.1}}), models[2]])


@pytest.mark.parametrize(
    ("cases", "names"),
    [
        ([{(SUITE, HEAD): {}}, {("v.kb.yaml", HEAD): {}}], [HEAD]),
        (
            [
                {(SUITE, HEAD): {}, ("v.kb.yaml", HEAD): {}},
                {("", HEAD): {}},
                {(SUITE, HEAD): {}},
            ],
            [f"{SUITE}::{HEAD}", f"v.kb.yaml::{HEAD}", HEAD],
        ),
    ],
)
def test_a_case_keeps_its_suite_where_a_model_has_it_in_two(
    cases: list[Any], names: list[str]
) -> None:
    filled = [
        model(str(n), {case: {"accuracy": 0.5} for case in of})
        for n, of in enumerate(cases)
    ]
    coefficients = {
        table.case
        for table in figure_tables(
            [*filled, *(replace(m, name=f"{m.name}b") for m in filled)]
        )
    }
    assert coefficients == set(names)


@pytest.mark.parametrize(
    ("slices", "within"),
    [
        (("known-zero-shot",), ["reliability[zero-shot]"]),
        (("known-zero-shot", "unseen-zero-shot"), ["reliability[zero-shot]"]),
    ],
)
def test_figures_are_correlated_over_models_within_a_slice(
    slices: tuple[str, ...], within: list[str]
) -> None:
    models = [
        model(
            str(k),
            {
                ("", f"reliability[{name}]"): {"ncr": 0.1 * k, "ur": 0.2 * k}
                for name in slices
            },
        )
        for k in range(3)
    ]
    rows = correlations_of(models)
    assert list(dict.fromkeys(name for name, _ in rows)) == within
    assert {(one.x, one.y, one.over, one.n) for _, one in rows} == {
        ("ncr", "ur", "models", 3)
    }
    # One model is no pair.
    assert (
        correlations_of(
            [models[0], model("x", {("", "head_to_tail[a]"): {"accuracy": 1.0}})]
        )
        == []
    )


def in_settings(
    name: str, ncr: float, *settings: str, within: str = "overall"
) -> list[ComparedModel]:
    """Return one model of a paper, a little better in each further setting."""
    return [
        model(
            f"{name}/{setting}",
            {("", f"reliability[{within}]"): {"ncr": ncr + k, "ur": 2 * ncr - k}},
            setting=setting,
        )
        for k, setting in enumerate(settings)
    ]


def test_a_model_in_several_settings_is_one_model_in_each_of_them() -> None:
    models = [
        one
        for k in range(4)
        for one in in_settings(f"m{k}", 0.1 * k, "zero-shot", "four-shot")
    ]
    rows = correlations_of(models)
    assert [
        (within, one.n, one.note) for within, one in rows if one.method == "pearson"
    ] == [
        ("reliability[overall], zero-shot", 4, ""),
        ("reliability[overall], four-shot", 4, ""),
    ]
    assert [one.r for _, one in rows] == [pytest.approx(1.0)] * 4
    # In one setting it need not be named, and a setting that is missing in one model leaves that one out.
    assert {within for within, _ in correlations_of(models[::2])} == {
        "reliability[overall]"
    }
    assert [one.n for _, one in correlations_of(models[:-1])] == [4, 4, 3, 3]
    # Three settings of one model are no three models.
    assert (
        correlations_of(in_settings("m", 0.1, "zero-shot", "four-shot", "four-shot-2"))
        == []
    )


def in_slices(
    name: str, at: float, *settings: str, several: bool = False
) -> ComparedModel:
    """Return a run that asked seen and unseen knowledge in these settings, with its figures over slices."""
    cases = {}
    for setting in settings:
        cases[(SUITE, f"reliability[known-{setting}]")] = {"ncr": at, "nccr": at * at}
        cases[(SUITE, f"reliability[unseen-{setting}]")] = {
            "ur": 1 - at,
            "iur": 1 - at**3,
        }
        overall = f"overall-{setting}" if several else "overall"
        cases[(SUITE, f"reliability[{overall}]")] = {
            "ncr": at,
            "ur": 1 - at,
            "nccr": at,
            "iur": 1 - at,
        }
    return model(name, cases)


def test_figures_over_the_slices_of_a_setting_stand_with_those_over_all_slices() -> (
    None
):
    runs = [
        in_slices(str(k), 0.1 * k, "zero-shot", "four-shot", several=True)
        for k in range(1, 3)
    ]
    comparison = side_by_side(
        runs, figure_tables(runs), correlated_points(runs), {}, {}
    )
    titles = {
        group.title: [case.slice for case in group.cases]
        for group in groups(comparison)
    }
    assert titles["Reliable KB, all slices"] == [
        "overall-four-shot",
        "overall-zero-shot",
    ]
    assert titles["Reliable KB, known"] == ["known-four-shot", "known-zero-shot"]


def test_two_suites_of_one_file_name_cannot_be_compared(tmp_path: Path) -> None:
    case = {"metrics": {"accuracy": {"value": 0.5}}, "n": 2, "settings": {}}
    report = {
        "created": "now",
        "kbrel_version": "0",
        "model": {"spec": "a"},
        "settings": {},
        "cases": [
            case | {"id": f"{folder}/w.kb.yaml::{HEAD}"} for folder in ("one", "two")
        ],
    }
    with pytest.raises(
        KbrelError,
        match=r"two suites of the same file name, w\.kb\.yaml, have the case head",
    ):
        _recorded("a", tmp_path, report, "report")


def test_models_with_the_same_figures_are_one_model() -> None:
    models = [
        model(name, {(SUITE, "monitor[P1]"): {"monitor": at, "accuracy": 1 - at * at}})
        for name, at in (("a", 0.1), ("b", 0.2), ("twin of a", 0.1), ("c", 0.4))
    ]
    assert twins(models) == (0, 0, 1, 0)
    (one,) = correlated_points(models)
    assert [at for at, _, _ in one.points] == [1, 2, 4]
    assert (one.pearson.n, one.pearson.note, one.spearman.r) == (
        3,
        "",
        pytest.approx(-1),
    )
    # The same figures in another prompt setting are no twin's.
    settings = [
        replace(models[0], setting=setting) for setting in ("zero-shot", "four-shot")
    ]
    assert twins(settings) == (0, 0)


@pytest.mark.parametrize(
    ("sources", "count"),
    [
        (("published/monitor",), 12),
        (("published/monitor/*", "published/reliable-kb/*/zero-shot"), 38),
    ],
)
def test_models_of_papers_are_named_by_folders_and_patterns(
    sources: tuple[str, ...], count: int, tmp_path: Path
) -> None:
    models = read_models(sources, tmp_path)
    assert len({one.name for one in models}) == len(models) == count
    assert not any(one.settings for one in models)
    for case in (case for one in models for case in one.cases):
        assert case[0] == ""


def test_a_papers_figures_and_a_report_without_outcomes_are_not_paired(
    tmp_path: Path,
) -> None:
    assert (
        read_outcomes("published/monitor/vicuna-7b", tmp_path)
        == "a paper's figures have no facts behind them"
    )
    (tmp_path / "report.json").write_text("{}")
    for source in (tmp_path, tmp_path / "report.json"):
        assert read_outcomes(str(source), tmp_path) == (
            "there is no outcomes.jsonl.xz beside its report, as older versions left it"
        )
    reason = read_outcomes("none-of-this-name", tmp_path)
    assert isinstance(reason, str)
    assert "none-of-this-name" in reason
