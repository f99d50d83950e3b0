"""A run against a server whose replies are odd ends with a report, and no error of Python in it."""

from __future__ import annotations

import json

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from tests.openai_server import Fault
from tests.plugin.conftest import ONE


def _number(actual):
    raise AssertionError(f"{actual} is no number")


END = {"finish_reason": "abort"}


def _usage(reply):
    reply["usage"] = {
        "prompt_tokens": float("nan"),
        "completion_tokens_details": {"reasoning_tokens": 1e999},
    }


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(change=_usage), ""),
        (
            Fault(raw="[" * 100_000),
            "the server's reply is no JSON (nested more than",
        ),
        (Fault(raw='{"choices": "' + "x" * 4_000_000), "the reply is larger than "),
        (
            Fault(change=lambda reply: reply["choices"][0].update(END)),
            "the server gave no answer: finish_reason 'abort'",
        ),
    ],
    ids=["NaN", "deep", "large", "abort"],
)
def test_an_odd_reply_is_an_error_of_its_fact_or_does_not_matter(
    pytester, mini_suite, server, gate, fault, message
):
    mini_suite(ONE)
    server.always = fault
    result = pytester.runpytest(*gate)
    text = (pytester.path / "kbrel-report" / "report.json").read_text("utf-8")
    cases = json.loads(text, parse_constant=_number)["cases"]
    errors = "\n".join(error for case in cases for error in case["errors"])
    assert (message in errors) if message else not errors
    assert "Traceback" not in result.stdout.str() + errors


def test_two_models_behind_one_name_are_told(pytester, mini_suite, server, gate):
    mini_suite(ONE)
    server.inject(
        Fault(), Fault(change=lambda reply: reply.update(model="other/m-fp4"))
    )
    result = pytester.runpytest(*gate)
    line = "several models answer under this name: judge fp_loopback and other/m-fp4 fp_loopback"
    assert line in " ".join(result.stdout.str().split())
    summary = (pytester.path / "kbrel-report" / "summary.md").read_text()
    assert line in summary.replace("\\", "")
