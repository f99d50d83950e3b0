"""A run against a server that did not end goes on where it stopped; one that ended serves no later run."""

from __future__ import annotations

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from tests.openai_server import BROKEN, Fault
from tests.plugin.conftest import ONE
from tests.plugin.served.runs import TWO, killed_after, prompts, stored, unfinished
from tests.reported import comparable


def test_a_killed_run_goes_on_and_ends_with_the_same_report(
    pytester, mini_suite, report, resume_notes, server, gate
):
    mini_suite(TWO)
    pytester.runpytest(*gate)
    whole, whole_prompts = report(), prompts(server)
    assert stored(pytester) == (0, 0)
    stored_answers, _ = killed_after(pytester, server, 30, *gate, "-n2")
    assert 20 < stored_answers < sum(whole_prompts.values())
    before = len(server.calls)
    pytester.runpytest(*gate, "-n2")
    again = prompts(server, before)
    assert comparable(report()) == comparable(whole)
    # The rest, and five questions to see whether it is still the same model.
    more = sum(again.values()) - (sum(whole_prompts.values()) - stored_answers + 5)
    # Two workers may ask a question of two cases at the same time.
    assert 0 <= more <= 3
    (line,) = resume_notes()
    assert line.startswith(
        f"{stored_answers} answers of openai/judge taken over from the run of 20"
    )
    assert "5 of the questions were asked again" in line
    assert "--kb-use-cache=off" in line
    assert stored(pytester) == (0, 0)
    assert not list((pytester.path / ".kbrel-cache").glob("run-*"))


@pytest.mark.parametrize(
    ("attribute", "value", "again", "said"),
    [
        ("say", lambda text: "another", 5, "said 'another', and then 'city "),
        (
            "always",
            Fault(change=lambda reply: reply.update(system_fingerprint="fp_new")),
            5,
            "'judge fp_loopback', now 'judge fp_new'",
        ),
        # This one is compared before anything is asked.
        ("about", {"root": "/models/v2"}, 0, '"root": "/models/v2"'),
    ],
)
def test_another_model_under_the_name_is_noticed_and_gets_all_questions(
    pytester,
    mini_suite,
    report,
    resume_notes,
    server,
    gate,
    attribute,
    value,
    again,
    said,
):
    mini_suite(ONE)
    unfinished(pytester, server, *gate)
    setattr(server, attribute, value)
    before = len(server.calls)
    assert pytester.runpytest(*gate).ret == 0
    assert sum(prompts(server, before).values()) == 12 + again
    (line,) = resume_notes()
    assert line.startswith("8 answers of openai/judge from the run of ")
    assert said in line
    assert report()["environment"]["answers_reused"] == "0"


@pytest.mark.parametrize("flags", [(), ("--kb-use-cache=off",)])
def test_a_run_that_ended_never_serves_a_later_one(
    pytester, mini_suite, resume_notes, server, gate, flags
):
    mini_suite(ONE)
    for run in (1, 2):
        result = pytester.runpytest(*gate, *flags)
        assert sum(prompts(server).values()) == 12 * run
        assert "kept" not in result.stdout.str()
        assert resume_notes() == []
    if flags:
        assert not (pytester.path / ".kbrel-cache").exists()
    else:
        assert stored(pytester) == (0, 0)


def test_a_run_that_lost_answers_to_its_server_is_not_paid_twice(
    pytester, mini_suite, report, resume_notes, server, gate
):
    mini_suite(ONE)
    unfinished(pytester, server, *gate)
    assert resume_notes() == [
        "this run did not end: the server's 8 answers are kept for a day, for the next run"
    ]
    before = len(server.calls)
    result = pytester.runpytest(*gate)
    assert sum(prompts(server, before).values()) == 4 + 5
    result.stdout.fnmatch_lines(
        [
            "8 of 12 answers reused from .kbrel-cache",
            "8 answers of openai/judge taken over *",
        ]
    )
    assert stored(pytester) == (0, 0)


def test_who_cannot_be_compared_stops_the_run_and_loses_nothing(
    pytester, mini_suite, report, resume_notes, server, gate
):
    mini_suite(ONE)
    stored_answers = unfinished(pytester, server, *gate)
    server.always = BROKEN
    result = pytester.runpytest(*gate)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(
        [
            "*a stored question asked again got no answer*--kb-use-cache=off asks all anew*"
        ]
    )
    assert stored(pytester) == (stored_answers, 1)
    server.always = None
    pytester.runpytest(*gate)
    assert len(resume_notes()) == 1


def asked_in_all(pytester, server, *args):
    """Return how many questions a run puts to the server that knows nothing."""
    before = len(server.calls)
    pytester.runpytest(*args, "--kb-use-cache=off")
    return sum(prompts(server, before).values())


def test_a_run_of_a_part_takes_only_what_it_asks_for(
    pytester, mini_suite, resume_notes, server, gate
):
    mini_suite(TWO)
    total = asked_in_all(pytester, server, *gate)
    stored_answers, _ = killed_after(pytester, server, 30, *gate)
    before = len(server.calls)
    assert pytester.runpytest(*gate, "-k", "places-head").ret == 0
    assert sum(prompts(server, before).values()) == 5
    unused, journals = stored(pytester)
    assert (unused, journals) == (stored_answers - 2, 1)
    assert (
        resume_notes()[1]
        == f"{unused} of the answers taken over were not needed, and stay for the next run"
    )
    before = len(server.calls)
    pytester.runpytest(*gate)
    # What the part used is asked again, for that run has ended; the rest is not.
    assert sum(prompts(server, before).values()) == total - unused + 5
    assert stored(pytester) == (0, 0)


def test_who_stops_at_a_failed_gate_has_ended_the_run_and_at_a_broken_server_has_not(
    pytester, mini_suite, server, gate
):
    mini_suite(TWO + "  gates:\n    cr: {min: 0.9}\n")
    unfinished(pytester, server, *gate, "-x")
    assert pytester.runpytest(*gate, "-x").ret != 0
    assert stored(pytester) == (0, 0)
