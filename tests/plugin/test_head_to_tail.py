from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pytest_kbrel.reports.responses import read_responses
from tests.plugin.conftest import CAPITALS, GATE

SUITE = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: {prompt}
  slices: [places-head, places-torso, places-tail, places-top10]
  overall: {{gates: {{accuracy_top10: 0, accuracy_macro: 0}}}}
"""
SLICES = ("head", "torso", "tail", "top10")
# Eleven of a kind to be head, so that a tenth of it is two.
FACTS = "".join(
    json.dumps({"relation": "P36", "subject": land, "object": city, "popularity": people, "bucket": bucket})
    + "\n"
    for n, (land, city, people) in enumerate(CAPITALS)
    for bucket in [("head", "torso", "tail")[max(n - 9, 0)]]
)


def asked(folder: Path) -> dict[str, list[str]]:
    """Return the prompts of each slice."""
    actual: dict[str, list[str]] = {}
    for exchange in read_responses(folder / "kbrel-report" / "responses.jsonl"):
        actual.setdefault(exchange.case.partition("-")[2].rstrip("]"), []).append(exchange.ask.request.prompt)
    return actual


@pytest.mark.parametrize("prompt", ["in-domain", "concise"])
def test_prompts_and_the_top_tenth_end_to_end(pytester, mini_suite, report, prompt):
    mini_suite(SUITE.format(prompt=prompt), FACTS)
    result = pytester.runpytest(*GATE)
    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    actual = report()
    cases = {case["id"].split("::")[1]: case for case in actual["cases"]}
    expected = {f"head_to_tail[places-{bucket}]" for bucket in SLICES}
    assert set(cases) == expected | {"head_to_tail[overall]", "pooled[overall]"}
    assert [cases[f"head_to_tail[places-{bucket}]"]["n"] for bucket in SLICES] == [10, 1, 1, 1]
    # The tenth counts in its own figure and in no other.
    metrics = {name: value["value"] for name, value in cases["head_to_tail[overall]"]["metrics"].items()}
    of = {
        bucket: {
            name: value["value"] for name, value in cases[f"head_to_tail[places-{bucket}]"]["metrics"].items()
        }
        for bucket in SLICES
    }
    assert metrics["accuracy_top10"] == of["top10"]["accuracy"]
    assert metrics["accuracy_macro"] == pytest.approx(sum(of[b]["accuracy"] for b in SLICES[:3]) / 3)
    for values in of.values():
        assert values["accuracy_rules"] == values["accuracy"]
        assert values["accuracy_em"] + values["hallucination_em"] + values["missing"] == pytest.approx(1)
        assert values["unparsable"] == 0
    prompts = asked(pytester.path)
    assert [len(prompts[bucket]) for bucket in SLICES] == [10, 1, 1, 1]
    for prompt_text in (text for texts in prompts.values() for text in texts):
        assert prompt_text.count("the capital of") == (2 if prompt == "in-domain" else 1)
        assert ("unsure" in prompt_text) == (prompt == "in-domain")


def test_a_question_set_is_built_and_gated(pytester, mini_suite, report):
    """From a dump to a verdict: build, name the set in a suite, run pytest over it."""
    mini_suite("suite: unused\nfacts: facts.jsonl\nhead_to_tail:\n")
    (pytester.path / "suites" / "mini.kb.yaml").unlink()
    lines = ["land,kind,value,people"]
    for land, city, people in CAPITALS:
        lines += [f"{land},capital,{city},{people}", f"{land},anthem,Song of {land},{people}"]
    (pytester.path / "dump.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (pytester.path / "templates.yaml").write_text(
        'P36: {question: "What is the capital of [X]?", label: capital, domain: places, from: capital}\n',
        encoding="utf-8",
    )
    built = pytester.run(
        *(sys.executable, "-m", "pytest_kbrel.cli", "build", "head-to-tail", "dump.csv"),
        *("--templates", "templates.yaml", "--output", "suites/lands"),
        *("--subject", "land", "--relation", "kind", "--object", "value", "--popularity", "people"),
    )
    assert built.ret == 0, built.stderr.str()
    built.stdout.fnmatch_lines(
        ["24 rows read", "  12 relation without a template", "entities of places: * head, * torso, * tail"]
    )
    (pytester.path / "suites" / "lands.kb.yaml").write_text(
        "suite: lands\nfacts: lands/facts.jsonl\n"
        "head_to_tail: {prompt: zero-shot, gates: {accuracy: 0.0}, overall: {gates: {gap: 1}}}\n",
        encoding="utf-8",
    )
    result = pytester.runpytest(*GATE)
    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    manifest = json.loads((pytester.path / "suites/lands/manifest.json").read_text(encoding="utf-8"))
    counts = {case["id"].split("::")[1]: case["n"] for case in report()["cases"]}
    taken = manifest["templates"][0]["taken"]
    assert taken >= 2
    assert counts == {
        **{f"head_to_tail[places-{bucket}]": taken for bucket in ("head", "torso", "tail")},
        "head_to_tail[overall]": 3 * taken,
        "pooled[overall]": 3 * taken,
    }
