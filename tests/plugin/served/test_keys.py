"""A server repeats the key that it was sent in all it says, and no run prints or writes it."""

from __future__ import annotations

import html
import json
import lzma
import re
import shutil
from pathlib import Path
from urllib.parse import quote, unquote

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel import printing
from pytest_kbrel.cli import main
from tests.openai_server import Call, OpenAIServer

KEY = "sk-Proj+Quux/7zeBra_Nine"
# What no other text holds, so that halves of the key are found too.
PARTS = ("proj+quux", "quux/7z", "zebra_nine", "7zebra")
FORMS = (
    KEY,
    KEY.upper(),
    KEY.lower(),
    quote(KEY, safe=""),
    quote(KEY, safe="").lower(),
    html.escape(KEY),
    f"Bearer {KEY}",
)
ECHO = " ".join(FORMS)
SUITE = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  gates: {accuracy: {min: 0.5}}
reliability:
  choices: 3
  distractors: 6
  unseen: {count: 6, as_of: 2026-11-01, expires: 2090-01-01}
  gates: {cr: {min: 0.3}}
"""
TEST = """
import os
from pytest_kbrel.records import GenerateRequest

def test_it(kb_model):
    key = os.environ["MY_KEY"]
    print(key)
    (response,) = kb_model.generate([GenerateRequest(prompt="Who?", max_new_tokens=8)])
    assert response.text == key.upper(), kb_model._connection.client.auth_headers
"""
ALL = (
    "-vv",
    "-rA",
    "--tb=long",
    "--showlocals",
    "--junitxml=j.xml",
    "-o",
    "junit_logging=all",
)


class Repeating(OpenAIServer):
    """It puts the key into each text of a reply, and fails by it at every fifth call."""

    def _reply(self, call: Call, fault: object) -> tuple[int, str]:
        status, text = super()._reply(call, fault)
        reply = json.loads(text)
        if call.path == "models":
            return status, json.dumps(reply)
        number = len(self.calls)
        if self.refuses or number % 5 == 0:
            error = {
                "error": {
                    "message": "x" * (250 + number) + ECHO,
                    "type": ECHO,
                    "code": ECHO,
                    ECHO: ECHO,
                }
            }
            return (401 if self.refuses else 400), json.dumps(error)
        reply |= {
            "id": ECHO,
            "model": f"of {ECHO}",
            "system_fingerprint": ECHO,
            "service_tier": ECHO,
            ECHO: ECHO,
        }
        message = reply["choices"][0]["message"]
        message |= {"reasoning_content": f"I know {ECHO}", ECHO: ECHO}
        message["content"] = f"{message['content']} {FORMS[number % len(FORMS)]} is it"
        return status, json.dumps(reply)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setattr(printing, "_patterns", {})
    Repeating.refuses = False
    with Repeating() as server:
        server.about = {"description": ECHO, "root": ECHO, ECHO: ECHO}
        server.headers = {"x-request-id": KEY, "x-echo": quote(ECHO)}
        server.say = lambda text: f"city {len(text)}"
        yield server


@pytest.fixture
def gate(pytester, mini_suite, server):
    """Return a function that runs the suite and a test of one's own, with or without a judge."""
    mini_suite(SUITE)
    pytester.makepyfile(test_it=TEST)
    at = f"base_url={server.base_url},api_key_env=MY_KEY,max_retries=0"

    def run(*more: str) -> pytest.RunResult:
        judge = (
            ("--kb-judge=openai/judge", f"--kb-judge-args={at}")
            if "judge" in more
            else ()
        )
        flags = [flag for flag in more if flag != "judge"]
        model = ("--kb-model=openai/judge", f"--kb-model-args={at}")
        return pytester.runpytest(*model, *judge, "suites", "test_it.py", *ALL, *flags)

    return run


def leaks(text: str) -> list[str]:
    """Return the parts of the key that a text holds, in whatever spelling."""
    for read in (
        html.unescape,
        unquote,
        unquote,
        lambda text: re.sub(r"\\+(?=[u/])", r"\\", text),
    ):
        text = read(text)
    text = re.sub(
        r"\\u([0-9a-fA-F]{4})", lambda actual: chr(int(actual[1], 16)), text
    ).replace("\\/", "/")
    return [part for part in PARTS if part in text.lower()]


def leaking(folder: Path) -> list[str]:
    actual = []
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        data = path.read_bytes()
        text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode(
            "utf-8", "replace"
        )
        actual += [f"{path.name}: {part}" for part in leaks(text)]
    return actual


@pytest.mark.slow
@pytest.mark.parametrize("more", [("-W", "error"), ("judge", "-n2")], ids=" ".join)
def test_no_file_and_no_line_of_a_run_holds_the_key(
    pytester, gate, server, report, capsys, more
):
    result = gate(*more, "--kb-baseline-update=prod")
    assert result.parseoutcomes()["failed"] > 1
    assert leaks(result.stdout.str() + result.stderr.str()) == []
    assert leaking(pytester.path) == []
    assert "***" in result.stdout.str()
    answers = (pytester.path / "kbrel-report/responses.jsonl").read_text("utf-8")
    assert re.search(r"city \d+ (Bearer )?\*\*\* is it", answers)
    assert "I know ***" in answers
    assert "***" in report()["model"]["backend_version"]
    assert "the server repeated its key" in report()["environment"]["model_notes"]
    assert any("***" in error for case in report()["cases"] for error in case["errors"])

    capsys.readouterr()
    shutil.copytree(pytester.path / "kbrel-report", pytester.path / "copy")
    # Whose cases are all invalid has no figures to compare.
    assert main(["compare", "kbrel-report", "copy"]) in (0, 2)
    again = pytester.runpytest("suites", "--kb-from-run=kbrel-report", *ALL)
    printed = capsys.readouterr()
    assert leaks(printed.out + printed.err + again.stdout.str()) == []
    assert leaking(pytester.path) == []


@pytest.mark.slow
def test_a_refused_key_is_not_repeated(pytester, gate, server):
    Repeating.refuses = True
    result = gate("judge")
    assert "refuses the key in MY_KEY" in result.stdout.str()
    assert leaks(result.stdout.str() + result.stderr.str()) == []
    assert leaking(pytester.path) == []
