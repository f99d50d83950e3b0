"""Blessing, examples and refusals beside a run, on settings and cases made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from pytest_kbrel.evaluation.cases import Retrieval, baseline_of
from pytest_kbrel.models import embedding
from pytest_kbrel.plugin.fixtures import failure_message, waiver_text
from pytest_kbrel.probes.base import ProbeResult
from pytest_kbrel.records import (
    CaseResult,
    Fact,
    Fingerprint,
    Outcome,
    ReliabilitySettings,
    Run,
    Table,
    Waiver,
)
from tests.made_cases import RECORDED_MODEL, made_case, made_options


def outcome(number: int, label: str) -> Outcome:
    return Outcome(
        **{
            "fact_id": str(number),
            "question": "",
            "expected": "",
            "answer": "",
            "prompt_digest": "",
        },
        label=cast(Any, label),
        values=(),
    )


def table(*labels: str) -> Table:
    return Table(
        columns=(),
        rows=tuple(outcome(number, label) for number, label in enumerate(labels)),
    )


def result(verdict: str = "pass", **more: Any) -> CaseResult:
    actual = {
        **{
            "id": "head_to_tail[a]",
            "suite": "mini.kb.yaml",
            "probe": "head_to_tail",
            "slice": "a",
        },
        **{"verdict": verdict, "n": 0, "duration": 0.0, "metrics": (), "gates": ()},
    }
    return CaseResult(**(actual | more))


def run(*cases: CaseResult) -> Run:
    return Run(
        kbrel_version="1",
        created="",
        model=None,
        environment=(("b", "1"),),
        settings=(),
        cases=cases,
    )


WAIVER = Waiver(
    owner="Ann", reason="known", expires="2090-01-01", case="head_to_tail[a]"
)


@pytest.mark.parametrize(
    ("one", "runxfail", "excused"),
    [
        (result("fail", waiver=WAIVER), False, True),
        (result("fail", waiver=WAIVER), True, False),
        (result("inconclusive", waiver=WAIVER), False, True),
    ],
)
def test_which_failure_a_waiver_lets_pass(
    one: CaseResult, runxfail: bool, excused: bool
) -> None:
    assert waiver_text(made_options(without_waivers=runxfail), one) == (
        "waived until 2090-01-01 by Ann: known" if excused else ""
    )


@pytest.mark.parametrize(
    ("verdict", "settings", "fails"),
    [
        ("fail", {}, True),
        ("pass", {}, False),
        ("no baseline", {"baseline": "prod"}, True),
    ],
)
def test_which_case_fails_its_test(
    verdict: str, settings: dict[str, str], fails: bool
) -> None:
    message = failure_message(made_options(**settings), result(verdict))
    assert message == (
        f"nothing was measured\nhead_to_tail[a]: {verdict}" if fails else ""
    )


ARGS = "seed=1,peft=x,base_url=http://localhost:9/v1"


class Encoder:
    """Notes how it was opened."""

    def __init__(self, spec: str, opened: Any) -> None:
        assert opened.args[0] == spec
        self.opened, self.closed = opened.args, False

    def close(self) -> None:
        self.closed = True


def test_an_encoder_is_opened_once_for_each_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Encoder] = []
    similar: list[Any] = []

    def open_encoder(*given: Any) -> Encoder:
        opened.append(Encoder(*given))
        return opened[-1]

    monkeypatch.setattr(embedding, "Encoder", open_encoder)
    monkeypatch.setattr(
        "pytest_kbrel.probes.reliability.with_shots",
        lambda case, by: similar.append(by) or case,
    )
    actual = Retrieval(tmp_path, ARGS)

    def case(suite: str, **settings: str) -> Any:
        return made_case(
            "reliability[a]", suite=suite, **({"prompt": "four-shot"} | settings)
        )

    for one in (
        case("x/a.kb.yaml", retrieval="hf/e"),
        case("x/b.kb.yaml", retrieval="hf/e"),
        case("y/a.kb.yaml", retrieval="hf/e"),
        case("x/a.kb.yaml", retrieval="openai/e"),
        case("x/a.kb.yaml", retrieval="tfidf"),
        case("x/a.kb.yaml", retrieval="hf/e", prompt="zero-shot"),
        made_case("monitor[a]", suite="x/a.kb.yaml"),
    ):
        assert actual.with_examples(one) is one
    assert [encoder.opened for encoder in opened] == [
        ("hf/e", ARGS, tmp_path / "x"),
        ("hf/e", ARGS, tmp_path / "y"),
        ("openai/e", ARGS, tmp_path / "x"),
    ]
    assert len(similar) == 5
    actual.close()
    assert all(encoder.closed for encoder in opened)


class Lengths(Encoder):
    """Takes texts of one length for alike, and notes what it was asked."""

    def embed(self, texts: Any) -> Any:
        self.asked = [*getattr(self, "asked", []), *texts]
        return np.array([[1.0, float(len(text))] for text in texts])


def test_an_encoder_chooses_the_nearest_of_the_distractors_that_were_drawn_by_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "Encoder", Lengths)
    spare = ("a", "bbb", "cc", "ddd", "ee", "ffff")
    drawn = Fact(id="drawn", relation="r", subject="s", object="xxx", negatives=spare)
    unseen = replace(drawn, id="unseen", object=None)
    few, own = replace(drawn, id="few", negatives=spare[:2]), replace(drawn, id="own")
    settings = ReliabilitySettings(distractors=3, retrieval="hf/e")
    case = replace(
        made_case("reliability[a]"),
        facts=(drawn, unseen, few, own),
        settings=settings,
        alike=(("drawn", 1.0), ("unseen", 1.0), ("few", 0.5)),
    )
    actual = Retrieval(tmp_path, "")
    chosen = {fact.id: fact.negatives for fact in actual.with_distractors(case).facts}
    # Of equally near ones the one that was drawn first.
    assert chosen == {
        "drawn": ("bbb", "ddd", "ffff"),
        "unseen": spare[:3],
        "few": spare[:2],
        "own": spare,
    }
    assert [fact.id for fact in actual.with_distractors(case).facts] == [
        "drawn",
        "unseen",
        "few",
        "own",
    ]
    # Nothing is opened where nothing is to be chosen.
    monkeypatch.setattr(embedding, "Encoder", None)
    for one in (
        replace(case, settings=replace(settings, retrieval="tfidf")),
        replace(case, facts=(few, own)),
        replace(case, alike=()),
        made_case("monitor[a]"),
    ):
        assert Retrieval(tmp_path, "").with_distractors(one) is one


def test_the_judge_of_the_baseline_model_is_named_before_it_was_asked_anything() -> (
    None
):
    judge = replace(RECORDED_MODEL, spec="openai/j")
    opened: list[Fingerprint] = []
    pool = SimpleNamespace(
        base=lambda: RECORDED_MODEL,
        helper=lambda text: opened.append(judge),
        helpers=lambda: tuple(opened),
    )
    facts = (Fact(id="1", relation="P36", subject="Peru", object="Lima"),)
    case = replace(made_case(), facts=facts, judge="openai/j")
    row = replace(
        outcome(1, "correct"), fact_id="1", answer="Lima", values=(1.0, 0.0, 1.0, 1.0)
    )
    answered = ProbeResult(
        table=Table(columns=("correct", "missing", "f1", "rouge_l"), rows=(row,))
    )
    assert baseline_of(case, answered, cast(Any, pool)).judge == judge
