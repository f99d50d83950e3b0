"""Models of set behaviour behind a server: what a server shows of a thought differs, the verdicts do not."""

import json

import pytest

from tests.plugin.real_models.manners import reply
from tests.plugin.real_models.world import FACTS, write_suite


@pytest.fixture
def served(pytester, openai_server, monkeypatch):
    """Return a function that gates a model of a manner over a server: its verdicts and responses."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    openai_server.models = ("small",)

    def gate(manner, args="", **settings):
        def say(text):
            asked = text.rpartition("Question: ")[2].partition("\n")[0]
            known = [fact for fact in FACTS if fact.subject in asked]
            # What is asked about a country's future has no answer.
            fact = (
                known[0]
                if known and not any(char.isdigit() for char in asked)
                else None
            )
            return reply(manner, "qwen3", fact)

        openai_server.say = say
        for name, value in settings.items():
            setattr(openai_server, name, value)
        write_suite(pytester.path / "suites")
        url = f"base_url={openai_server.base_url}"
        pytester.runpytest(
            "suites",
            "-knot monitor",
            "--kb-model=openai/small",
            f"--kb-model-args={url}{args}",
        )
        folder = pytester.path / "kbrel-report"
        report = json.loads((folder / "report.json").read_text("utf-8"))
        lines = (folder / "responses.jsonl").read_text("utf-8").splitlines()
        slices = [case for case in report["cases"] if "overall" not in case["id"]]
        return {case["verdict"] for case in slices}, [
            json.loads(line)["response"] for line in lines
        ]

    return gate


def test_a_model_that_knows_its_facts_passes(served):
    assert served("chatty")[0] == {"pass"}


@pytest.mark.parametrize(
    ("args", "parses"), [("", ""), (",enable_thinking=True", "reasoning_content")]
)
def test_a_thinker_passes_whether_its_server_takes_thoughts_out_of_the_text_or_not(
    served, args, parses
):
    verdicts, responses = served("thinker", args, parses=parses)
    assert verdicts == {"pass"}
    assert all(response["thought"].startswith("Could it be") for response in responses)
    assert not any("Could it be" in response["text"] for response in responses)


@pytest.mark.parametrize(
    ("manner", "parses"), [("endless", ""), ("only-mark", "reasoning_content")]
)
def test_one_that_never_ends_its_thought_is_not_measured(served, manner, parses):
    assert served(manner, ",max_thinking_tokens=4", parses=parses)[0] == {"invalid"}
