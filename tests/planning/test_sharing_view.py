"""``kbrel sharing``: what it prints is what a run feeds, and nothing is loaded for it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.models.asking import Asker
from pytest_kbrel.models.hf import load
from pytest_kbrel.models.hf_batches import ROW
from pytest_kbrel.models.sharing import Asked, plan
from pytest_kbrel.models.spec import parse_spec
from pytest_kbrel.planning.asking import Scenario
from pytest_kbrel.planning.tree import tree_lines
from pytest_kbrel.probes import run_case
from pytest_kbrel.suites import load_suite
from tests.models.fedometer import Fedometer
from tests.plugin.conftest import CAPITALS, RELATIONS, SUITE

MONITOR = "monitor[P36]"


@pytest.fixture
def suite(tmp_path) -> Path:
    lines = [
        {"relation": "P36", "subject": subject, "object": city, "popularity": people}
        for subject, city, people in CAPITALS
    ]
    (tmp_path / "facts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "relations.yaml").write_text(RELATIONS)
    path = tmp_path / "mini.kb.yaml"
    path.write_text(SUITE)
    return path


@pytest.fixture
def view(suite, tmp_path, capsys):
    """Run the command; return what it wrote as JSON and the lines it printed."""

    def run(*flags: str, again: bool = False) -> tuple[dict, list[str]]:
        file = tmp_path / "sharing.json"
        suites = [str(suite)]
        if again:
            other = suite.with_name("other.kb.yaml")
            other.write_text(SUITE)
            suites.append(str(other))
        assert main(["sharing", *suites, "--kb-model", "reference", "--json", str(file), *flags]) == 0
        return json.loads(file.read_text()), capsys.readouterr().out.splitlines()

    return run


class Metered:
    """Answers, one token a text, so that nothing is fed but what is asked; counts that."""

    def __init__(self, model) -> None:
        self._model = model
        self.fed = 0

    def score(self, requests):
        return self._counted(lambda: self._model.score(requests))

    def generate(self, requests):
        short = [dataclasses.replace(request, max_new_tokens=1) for request in requests]
        return self._counted(lambda: self._model.generate(short))

    def _counted(self, ask):
        # The self-checks are no part of a run's questions.
        assert self._model.rungs == ("packed", "packed")
        meter = Fedometer(self._model.parts.model)
        try:
            return ask()
        finally:
            meter.stop()
            self.fed += meter.tokens


def test_the_tokens_fed_are_those_that_a_run_feeds(suite, view):
    cases = {case.id: case for case in load_suite(suite).cases}
    fixed = [case for name, case in cases.items() if not name.startswith("reliability")]
    assert len(fixed) == 4
    told, _ = view()
    planned = {case["id"].partition("::")[2]: case for case in told["cases"]}
    model = load(parse_spec("reference"))
    metered = Metered(model)
    asker = Asker(metered)
    try:
        for case in fixed:
            before = metered.fed
            run_case(case, lambda requests, to: asker.ask(requests), lambda exchanges: None)
            way = planned[case.id]["ways"]["packed"]
            assert way["tokens_fed"] == metered.fed - before > 0
            assert planned[case.id]["fixed"]
    finally:
        model.close()
    assert not planned["reliability[seen-zero-shot]"]["fixed"]


def test_the_view_counts_all_questions_and_each_token_once(suite, view):
    told, lines = view()
    found = {case["id"].partition("::")[2]: case for case in told["cases"]}
    calls = list(Scenario(load_suite(suite).cases, "most").calls())
    for name, case in found.items():
        own = [call for call in calls if call.case.endswith(name)]
        assert case["requests"] == sum(call.asked for call in own)
        assert case["distinct"] == sum(len(call.requests) for call in own)
        ways = [case["ways"][way]["tokens_fed"] for way in ("packed", "prefix", "plain")]
        assert max(ways[:2]) <= ways[2] <= case["tokens_asked"]
    every = told["all"]
    for way in ("packed", "prefix", "plain"):
        for figure in ("tokens_fed", "padding"):
            assert every["ways"][way][figure] == sum(case["ways"][way][figure] for case in found.values())
    fed, padding = every["ways"]["packed"]["tokens_fed"], every["ways"]["packed"]["padding"]
    asked = every["tokens_asked"]
    assert f"all: {every['requests']:,} questions, {asked:,} tokens if each were fed whole" in lines
    said = f"packed {fed:,} {padding:,} {100 * (1 - fed / asked):.1f} % {asked / fed:.1f}"
    assert said in [" ".join(line.split()) for line in lines]
    row = next(line for line in lines if line.startswith(MONITOR))
    figures = found[MONITOR]
    assert row.split()[1:4] == [f"{figures[key]:,}" for key in ("requests", "distinct", "tokens_asked")]


def test_a_question_asked_twice_is_fed_once(view):
    both, _ = view()
    twice, _ = view(again=True)
    assert twice["all"]["requests"] == 2 * both["all"]["requests"]
    assert twice["all"]["tokens_asked"] == 2 * both["all"]["tokens_asked"]
    assert twice["all"]["ways"] == both["all"]["ways"]


def test_a_slice_alone_and_shorter_rows(view):
    whole, _ = view("--slice", "P36")
    assert [case["id"].partition("::")[2] for case in whole["cases"]] == [MONITOR]
    short, _ = view("--slice", MONITOR, "--tokens-per-row", "12")
    longer, shorter = (told["all"]["ways"]["packed"]["tokens_fed"] for told in (whole, short))
    assert longer < shorter
    assert whole["all"]["ways"]["plain"] == short["all"]["ways"]["plain"]


def test_a_tree_shows_what_branches(view):
    _, lines = view("--show", MONITOR)
    text = "\n".join(lines)
    assert "round 1: " in text
    assert '" capital of"' in text or "capital of" in text
    assert " branches" in text
    assert "packed" not in text


def test_a_tree_is_the_plan_itself():
    words = ["<s>", "The", "capital", "of", "France", "Japan", "is", "Paris", "Tokyo", "."]
    sequences = [
        Asked(ids=ids, start=len(ids) - 1)
        for ids in ((0, 1, 2, 3, 4, 6, 7), (0, 1, 2, 3, 4, 6, 8), (0, 1, 2, 3, 5, 6))
    ]
    lines = list(tree_lines(plan(sequences, 100), lambda ids: " ".join(words[n] for n in ids)))
    assert lines == [
        "no prefix of its own: 1 row, 3 questions",
        "  row of 10 tokens, 3 questions",
        '    "<s> The capital of" (4 tokens), then 2 branches',
        '      "France is" (2 tokens), then 2 branches',
        '        "Paris" (1 token)',
        '        "Tokyo" (1 token)',
        '      "Japan is" (2 tokens)',
    ]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ("--kb-model", "openai/big"),
            "--kb-model: found openai/big; allowed: a checkpoint (a server does not tell what it shares)",
        ),
        (
            ("--kb-model", "vllm/reference"),
            "--kb-model: found vllm/reference; vLLM shares prefixes in its own way; allowed: the checkpoint "
            "itself, such as reference",
        ),
        (("--kb-model", "reference", "--slice", "P63"), "--slice: found 'P63'; did you mean 'P36'?"),
        (("--kb-model", "reference", "--show", "monitor[P37]"), "did you mean 'monitor[P36]'?"),
        (("--kb-model", "./nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_shown_is_said(suite, capsys, flags, said):
    assert main(["sharing", str(suite), *flags]) == 2
    assert said in capsys.readouterr().err


def test_the_help_names_the_length_of_a_row(capsys):
    with pytest.raises(SystemExit):
        main(["sharing", "--help"])
    assert f"length of a packed row (default: {ROW})" in " ".join(capsys.readouterr().out.split())


def test_a_missing_suite_is_said(tmp_path, capsys):
    for path, said in (
        (tmp_path / "no.kb.yaml", "no such suite"),
        (tmp_path, "found no suite in this folder"),
    ):
        assert main(["sharing", str(path), "--kb-model", "reference"]) == 2
        assert said in capsys.readouterr().err
