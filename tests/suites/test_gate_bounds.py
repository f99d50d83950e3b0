"""What a gate may demand: every word, and both sides of each bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.catalogue.metrics import CONTROLS, METRICS
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.catalogue.slices import reliability_slice, reliability_slices, slice_name
from pytest_kbrel.facts.located.node import Entry, Node
from pytest_kbrel.records import Gate
from pytest_kbrel.suites.gates import CHOICES, LIMITS, REFUSED, SYNONYMS, as_gate, override, read_integrity

SAME = {
    "min": "gte ge minimum",
    "max": "lte le maximum",
    "max_drop": "max_regression",
    "recovery": "recovery_threshold min_recovery",
}


def test_the_words_there_are() -> None:
    others = "max_rise max_increase max_decrease threshold min_absolute_change min_relative_change"
    assert set(SYNONYMS) == {*" ".join(SAME.values()).split(), *others.split()}
    assert set(REFUSED) == {
        *("gt", "lt", "eq", "not_eq", "tolerance", "rtol", "atol", "relative", "absolute"),
        *("greater_is_better", "higher_is_better", "weight"),
    }


@pytest.mark.parametrize("word", ["GTE", "Min", "min_", " min", "maximum_", "", "above"])
def test_another_word_is_no_rule(word: str) -> None:
    with pytest.raises(ValueError, match="unknown rule"):
        as_gate(word, 0.1, METRICS["accuracy"])


@pytest.mark.parametrize(
    ("metric", "rule", "bounds", "wrong"),
    [
        ("accuracy", "min", (0, 1), (-0.001, 1.001)),
        ("accuracy", "max", (0, 1), (-0.001, 1.001)),
        ("accuracy", "max_drop", (0, 1), (-0.001, 1.001)),
        ("accuracy", "recovery", (0.001, 1), (0, 1.001)),
        ("ncr", "min", (-1, 0, 1), (-1.001, 1.001)),
        ("ncr", "max_drop", (0, 2), (-0.001, 2.001)),
        ("accuracy_std", "max", (0, 0.5), (-0.001, 0.501)),
        ("accuracy_std", "max_drop", (0, 0.5), (0.501,)),
        ("monitor", "max", (0, 1e9), (-0.001,)),
        ("monitor", "max_drop", (0, 1e9), (-0.001,)),
    ],
)
def test_a_bound_may_stand_at_the_end_of_the_range(
    metric: str, rule: str, bounds: tuple[float, ...], wrong: tuple[float, ...]
) -> None:
    for bound in bounds:
        assert as_gate(rule, bound, METRICS[metric]) == (rule, bound)
    for bound in wrong:
        with pytest.raises(ValueError, match=f"'{rule}' of {metric} must be"):
            as_gate(rule, bound, METRICS[metric])


@pytest.mark.parametrize(("bound", "hint"), [(40, "0.4"), (100, "1"), (1.5, "0.015"), (100.5, ""), (1e6, "")])
def test_a_percentage_is_told_as_a_share(bound: float, hint: str) -> None:
    with pytest.raises(ValueError, match="found") as caught:
        as_gate("min", bound, METRICS["accuracy"])
    assert str(caught.value).endswith(f"; did you mean {hint}?" if hint else f"found {bound:g}")


def test_a_change_may_be_nothing_and_no_improvement() -> None:
    for key, rule, same in (("min_absolute_change", "max_drop", 0), ("min_relative_change", "recovery", 1)):
        assert as_gate(key, 0, METRICS["accuracy"]) == (rule, same)
        assert as_gate(key, -0.0, METRICS["accuracy"]) == (rule, same)
        with pytest.raises(ValueError, match=f"'{key}' must be at most 0, found 0.001"):
            as_gate(key, 0.001, METRICS["accuracy"])


def test_a_ratio_of_what_may_be_negative_is_refused_under_each_name() -> None:
    for key in ("recovery", "recovery_threshold", "min_recovery"):
        with pytest.raises(ValueError, match="is a ratio, and ncr can be negative"):
            as_gate(key, 0.9, METRICS["ncr"])


def test_the_metrics_that_have_controls() -> None:
    assert CONTROLS == {
        "cr": ("cr_control_majority", "cr_control_shuffled"),
        "ncr": ("ncr_control_majority",),
        "c_correct": ("c_correct_control_random", "c_correct_control_shuffled"),
        "c_wrong": ("c_wrong_control_random", "c_wrong_control_shuffled"),
        "ccr": ("ccr_control_majority", "ccr_control_random", "ccr_control_shuffled"),
        "cwr": ("cwr_control_random", "cwr_control_shuffled"),
        "nccr": ("nccr_control_majority", "nccr_control_random", "nccr_control_shuffled"),
    }


def test_what_a_metric_needs() -> None:
    assert {name: dict(probe.setting_needs) for name, probe in PROBES.items()} == {
        "monitor": {
            **dict.fromkeys(("accuracy_wp", "accuracy_fc_pos", "accuracy_fc_neg"), ("formats", "all")),
            **dict.fromkeys(
                ("calls_study", "tokens_study", "saving_calls", "saving_tokens"), ("study", "full")
            ),
        },
        "head_to_tail": {},
        "reliability": {},
    }
    assert {name: dict(probe.overall_needs) for name, probe in PROBES.items()} == {
        "monitor": {},
        "head_to_tail": {
            "gap": ("head", "tail"),
            **{f"accuracy_{name}": (name,) for name in ("head", "torso", "tail", "top10")},
        },
        "reliability": {
            **dict.fromkeys(("nccr", "ncr"), ("seen",)),
            **dict.fromkeys(("ur", "iur"), ("unseen",)),
            **dict.fromkeys(("c_wrong", "avg"), ("seen", "unseen")),
        },
    }


@pytest.mark.parametrize("other", [{"metric": "pfd"}, {"rule": "max"}])
def test_a_special_gate_replaces_that_of_its_metric_and_rule_only(other: dict[str, str]) -> None:
    general = Gate(metric="accuracy", rule="min", bound=0.1)
    special = Gate(**{"metric": "accuracy", "rule": "min", "bound": 0.0, **other})  # type: ignore[arg-type]
    assert override([general], [special]) == (general, special)
    same = Gate(metric="accuracy", rule="min", bound=0.0, line=9)
    assert override([general], [same]) == (same,)


def entries(**limits: object) -> dict[str, Entry]:
    path = Path("t.kb.yaml")
    inside = {name: Entry(line=2, node=Node(path=path, line=2, value=item)) for name, item in limits.items()}  # type: ignore[arg-type]
    return {"integrity": Entry(line=1, node=Node(path=path, line=1, value=inside))}


def test_every_limit_of_integrity_takes_its_whole_range() -> None:
    from pytest_kbrel.records import Integrity

    words = ("below_random", "constant")
    assert CHOICES == ("invalid", "allowed")
    assert set(LIMITS) == {
        *("answered", "empty", "truncated", "repeated", "errored", "unparsable", "unread"),
        *("anchor_prob", "first_token"),
        *words,
    }
    for name in LIMITS:
        good, wrong = (
            (CHOICES, (0, "Invalid")) if name in words else ((0, 0.5, 1), (-0.001, 1.001, True, "1"))
        )
        for item in good:
            assert getattr(read_integrity(entries(**{name: item}), "a suite", Integrity()), name) == item
        for item in wrong:
            with pytest.raises(Exception, match=f"{name} in integrity of a suite must be"):
                read_integrity(entries(**{name: item}), "a suite", Integrity())


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("seen-zero-shot", ("seen", "", "zero-shot")),
        ("unseen-four-shot-2", ("unseen", "", "four-shot-2")),
        ("seen-four-shot", ("seen", "", "four-shot")),
        ("seen-time-four-shot", ("seen", "time", "four-shot")),
        ("seen-nq-open-four-shot-2", ("seen", "nq-open", "four-shot-2")),
        ("seen-four-shot-zero-shot", ("seen", "four-shot", "zero-shot")),
        ("seen", None),
        ("seen-", None),
        ("zero-shot", None),
        ("Seen-zero-shot", None),
        ("seen--zero-shot", None),
        ("seen-two-shot", None),
        ("seen-zero-shot-", None),
        ("unseenzero-shot", None),
    ],
)
def test_the_name_of_a_reliability_slice(name: str, parts: tuple[str, str, str] | None) -> None:
    found = reliability_slice(name)
    assert (found and (found.kind, found.group, found.prompt)) == parts
    if parts is not None:
        assert slice_name(*parts) == name


def test_the_slices_that_are_known_without_facts() -> None:
    plain = ("seen-zero-shot", "unseen-zero-shot", "seen-four-shot", "unseen-four-shot")
    assert reliability_slices("none") == (*plain, "seen-four-shot-2", "unseen-four-shot-2")
    assert reliability_slices("dataset") == reliability_slices("none")
    typed = reliability_slices("answer_type")
    assert len(typed) == 30
    assert typed[:4] == (
        *("seen-number-zero-shot", "unseen-number-zero-shot", "seen-person-zero-shot"),
        "unseen-person-zero-shot",
    )
