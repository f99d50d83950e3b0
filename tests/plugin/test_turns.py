"""Cases that take turns, look by look, where a failure ends the session."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.plugin.turns import Asking, Turns
from pytest_kbrel.records import Case, CaseResult, GateResult, Looks, Waiver
from tests.made_cases import made_case, made_result
from tests.stub_config import StubConfig

DROP = GateResult(
    metric="accuracy", rule="max_drop", bound=0.05, verdict="pass", reason=""
)


def item_of(case: Case, *marks: str) -> SimpleNamespace:
    return SimpleNamespace(
        nodeid=f"{case.suite}::{case.id}",
        callspec=SimpleNamespace(params={"kb_case": case}),
        get_closest_marker=lambda name: name in marks or None,
    )


class Session:
    """Cases by the verdict of each look, the last one at the end; ``order`` is that of the looks taken."""

    def __init__(
        self,
        folder: Path,
        verdicts: Mapping[str, Sequence[Any]],
        *,
        maxfail: int = 1,
        marks: Mapping[str, str] | None = None,
        worker: dict[str, str] | None = None,
        waiver: Waiver | None = None,
    ) -> None:
        self.cases = {name: made_case(f"head_to_tail[{name}]") for name in verdicts}
        self.verdicts = {self.cases[name].id: list(of) for name, of in verdicts.items()}
        self.waiver = waiver
        self.order: list[str] = []
        config = StubConfig(folder, others={"maxfail": maxfail}, worker=worker)
        items = [
            item_of(case, (marks or {}).get(name, ""))
            for name, case in self.cases.items()
        ]
        self.session = SimpleNamespace(config=config, items=items, testsfailed=0)
        self.turns = Turns(
            cast(pytest.Session, self.session),
            self.ask,
            lambda case: len(self.verdicts[case.id]),
            failing={"fail", "invalid"},
        )

    def ask(self, case: Case) -> Asking:
        looks = self.verdicts[case.id]
        for number, verdict in enumerate(looks, start=1):
            self.order.append(f"{case.slice}{number}")
            if isinstance(verdict, Exception):
                raise verdict
            result = dataclasses.replace(
                made_result(
                    looks=Looks(
                        taken=number, of=len(looks), asked=number, facts=len(looks)
                    )
                ),
                id=case.id,
                suite=case.suite,
                verdict=verdict,
                gates=(dataclasses.replace(DROP, verdict=verdict),),
                waiver=self.waiver,
            )
            if number == len(looks) or (yield result):
                return result
        raise AssertionError

    def decide(self, name: str) -> CaseResult:
        return self.turns.decide(self.cases[name])

    @property
    def items(self) -> list[str]:
        return [item.nodeid[-2] for item in self.session.items]


SOME = "inconclusive"


def test_where_a_failure_ends_the_session_cases_are_asked_a_share_each_in_turn(
    tmp_path: Path,
) -> None:
    session = Session(
        tmp_path,
        {"a": [SOME, SOME, "pass"], "b": [SOME, "pass"], "c": [SOME, SOME, "pass"]},
    )
    assert session.decide("a").verdict == "pass"
    # After a third of a and c comes the first half of b.
    assert session.order == ["a1", "c1", "b1", "a2", "c2", "a3"]
    assert [session.decide(name).verdict for name in "bc"] == ["pass", "pass"]
    assert session.order[6:] == ["b2", "c3"]
    assert session.items == ["a", "b", "c"]


def test_the_first_failure_is_run_next_and_what_was_asked_is_reported_with_it(
    tmp_path: Path,
) -> None:
    session = Session(
        tmp_path,
        {
            "a": [SOME] * 4,
            "b": ["pass"],
            "c": [SOME] * 4,
            "d": [SOME, "fail", "pass", "pass"],
        },
    )
    own = session.decide("a")
    assert session.order == ["a1", "c1", "d1", "a2", "c2", "d2"]
    assert own.looks == Looks(taken=2, of=4, asked=2, facts=4)
    why = "asked in part: head_to_tail[d] failed, which ends the session"
    assert session.turns.why_partial(own) == why
    assert session.turns.unreported(own) == []
    assert session.items == ["a", "d", "b", "c"]
    failed = session.decide("d")
    assert (failed.verdict, session.turns.why_partial(failed)) == ("fail", "")
    (other,) = session.turns.unreported(failed)
    assert (other.id, other.looks and other.looks.asked) == ("head_to_tail[c]", 2)


def test_a_case_that_fails_itself_ends_at_its_first_failing_gate(
    tmp_path: Path,
) -> None:
    session = Session(tmp_path, {"a": [SOME, "fail", "pass"], "b": [SOME] * 3})
    own = session.decide("a")
    assert (own.verdict, session.order) == ("fail", ["a1", "b1", "a2"])
    assert [result.id for result in session.turns.unreported(own)] == [
        "head_to_tail[b]"
    ]


def test_a_session_that_ends_at_two_failures_goes_on_after_one(tmp_path: Path) -> None:
    verdicts = {"a": [SOME] * 3, "b": ["fail", SOME, SOME], "c": [SOME, "fail", SOME]}
    session = Session(tmp_path, verdicts, maxfail=2)
    own = session.decide("a")
    assert session.order == ["a1", "b1", "c1", "a2", "c2"]
    assert "[b], head_to_tail[c] failed" in session.turns.why_partial(own)
    assert session.items == ["a", "b", "c"]
    assert session.turns.unreported(session.decide("b")) == []


@pytest.mark.parametrize("options", [{"maxfail": 0}, {"worker": {"workerid": "gw0"}}])
def test_without_an_end_at_failures_or_under_xdist_cases_are_asked_one_after_the_other(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    session = Session(
        tmp_path, {"a": [SOME, SOME, "pass"], "b": [SOME, "fail"]}, **options
    )
    session.decide("a")
    assert session.order == ["a1", "a2", "a3"]


def test_a_case_asks_to_its_end_where_failures_do_not_end_the_session(
    tmp_path: Path,
) -> None:
    session = Session(tmp_path, {"a": ["fail", "fail", "fail"]}, maxfail=0)
    session.decide("a")
    assert session.order == ["a1", "a2", "a3"]


@pytest.mark.parametrize("mark", ["skip", "skipif", "xfail"])
def test_a_case_that_may_not_fail_the_session_takes_no_turns(
    tmp_path: Path, mark: str
) -> None:
    session = Session(
        tmp_path, {"a": [SOME, "pass"], "b": ["fail", "fail"]}, marks={"b": mark}
    )
    assert session.decide("a").verdict == "pass"
    assert session.order == ["a1", "a2"]


def test_a_waived_failure_does_not_end_the_session(tmp_path: Path) -> None:
    waiver = Waiver(
        owner="me", case="head_to_tail[b]", reason="known", expires="2090-01-01"
    )
    session = Session(
        tmp_path, {"a": [SOME, SOME, "pass"], "b": ["fail", "fail"]}, waiver=waiver
    )
    assert session.decide("a").verdict == "pass"
    assert session.order == ["a1", "b1", "a2", "a3"]


def test_an_error_of_another_case_is_its_own(tmp_path: Path) -> None:
    session = Session(
        tmp_path, {"a": [SOME, SOME, "pass"], "b": [SOME, ModelError("gone"), "pass"]}
    )
    assert session.turns.why_partial(session.decide("a"))
    assert session.order == ["a1", "b1", "a2", "b2"]
    with pytest.raises(ModelError, match="gone"):
        session.decide("b")


def test_cases_of_another_suite_and_python_tests_end_the_turns(tmp_path: Path) -> None:
    session = Session(tmp_path, {"a": [SOME, "pass"], "b": [SOME, "fail"]})
    session.session.items.insert(1, SimpleNamespace(nodeid="test_it.py::test_it"))
    session.decide("a")
    assert session.order == ["a1", "a2"]
