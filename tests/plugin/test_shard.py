"""--kb-shard: a session that asks a part of the facts, says so everywhere and decides nothing."""

from __future__ import annotations

import json
from pathlib import Path

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from tests.plugin.conftest import GATE, ONE, RELATIVE, SUITE, one_line

PYTHON = """\
def test_part(kb_shard, kb_facts):
    mine = [fact.id for fact in kb_facts("facts.jsonl") if kb_shard.has(fact.id)]
    assert (kb_shard.index, kb_shard.count) == (2, 3)
    assert 0 < len(mine) < 12
    assert kb_shard.part(mine) == tuple(mine)
"""


def asked(folder):
    lines = [
        json.loads(line)
        for line in (folder / "responses.jsonl").read_text().splitlines()
    ]
    return {(line["case"], line["fact"]) for line in lines}


def test_a_shard_is_a_part_and_says_so_everywhere(pytester, mini_suite, report):
    mini_suite(SUITE)
    result = pytester.runpytest(
        *GATE, "--kb-shard=2/3", "--kb-inconclusive=fail", "--junitxml=out.xml"
    )
    assert result.ret == 0
    text = one_line(result)
    assert "shard 2/3 by fact: it decides nothing" in text
    assert "part 2 of 3, dealt out by fact: no gate is decided before" in text
    assert "partial run" not in text
    actual = report()
    assert {key: actual["shard"][key] for key in ("index", "count", "by")} == {
        "index": 2,
        "count": 3,
        "by": "fact",
    }
    assert list(actual["shard"]["suites"]) == ["suites/mini.kb.yaml"]
    assert (actual["complete"], actual["summary"]["verdict"]) == (False, "inconclusive")
    assert {case["verdict"] for case in actual["cases"]} == {"inconclusive"}
    result.assert_outcomes(skipped=6)
    assert not any(
        case["gates"] or case["metrics"] or case["aggregate"]
        for case in actual["cases"]
    )
    assert "part 2 of 3" in (pytester.path / "kbrel-report" / "summary.md").read_text()
    assert 'name="kb_shard" value="2/3"' in (pytester.path / "out.xml").read_text()


def test_progress_expects_only_the_requests_of_the_shard(pytester, mini_suite):
    mini_suite(ONE)
    pytester.makeconftest(
        "import json, pathlib\n\n\ndef pytest_sessionfinish(session):\n"
        "    recorder = session.config.pluginmanager.getplugin('kbrel-recorder')\n"
        "    pathlib.Path('expected').write_text(json.dumps(recorder.expected_requests()[0]))\n"
    )
    for index in "12":
        pytester.runpytest(*GATE, f"--kb-shard={index}/2", f"--kb-output-path={index}")
        expected = json.loads((pytester.path / "expected").read_text())
        assert sum(expected.values()) == len(asked(pytester.path / index))


def test_a_failed_response_fails_the_shard(pytester, mini_suite, report):
    mini_suite(ONE)
    (pytester.path / "knows.jsonl").write_text('{"default": {"error": "no"}}\n')
    result = pytester.runpytest(*GATE, "--kb-shard=1/2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert {case["verdict"] for case in report()["cases"]} == {"invalid"}


@pytest.mark.parametrize("where", ["environment", "ini"])
def test_a_shard_asks_for_no_baseline_that_is_not_there_yet(
    pytester, mini_suite, monkeypatch, report, where
):
    mini_suite(RELATIVE)
    if where == "ini":
        pytester.makeini("[pytest]\nkb_baseline = prod\n")
    else:
        monkeypatch.setenv("KB_BASELINE", "prod")
    folders = ["1", "2"]
    for folder in folders:
        result = pytester.runpytest(
            *GATE, f"--kb-shard={folder}/2", f"--kb-output-path={folder}"
        )
        assert result.ret == 0
        assert "baseline prod" not in one_line(result)
    assert (
        pytester.runpytest(
            "suites", "--kb-baseline-update=prod", "--kb-from-run", *folders
        ).ret
        == 0
    )
    # Nor does a shard say that it is compared with one that is there.
    result = pytester.runpytest(*GATE, "--kb-shard=1/2")
    assert result.ret == 0
    assert "baseline prod" not in one_line(result)
    assert (report()["baseline"], report()["differences"]) == (None, [])
    assert "prod" not in (pytester.path / "kbrel-report" / "summary.md").read_text()
    result = pytester.runpytest(*GATE, "--kb-shard=1/2", "--kb-baseline=other")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_a_test_in_python_is_told_the_share(pytester, mini_suite, monkeypatch):
    mini_suite(ONE)
    Path(pytester.path, "suites", "test_mine.py").write_text(PYTHON)
    monkeypatch.setenv("KB_SHARD", "2/3")
    pytester.runpytest(*GATE).assert_outcomes(passed=1, skipped=3)
