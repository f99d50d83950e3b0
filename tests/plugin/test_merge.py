"""Shards joined again: the run without shards to the byte, and every shard that does not belong is named."""

import json
import random
import shutil
from xml.etree import ElementTree

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.reports.json_report import read_run
from tests.junit_schema import junit_errors
from tests.plugin.conftest import (
    GATE,
    KNOWS,
    MODEL,
    ONE,
    OVERCONFIDENT,
    RELATIONS,
    RENAMED,
    facts_file,
    one_line,
)
from tests.reported import comparable

# All that is asked of a fact with what other facts of its case hold: wrong answers, examples, controls.
ALL = """\
suite: mini
facts: facts.jsonl
monitor:
  negatives: 2
  gates: {accuracy_base: {min: 0.3, max_drop: 0.1}}
head_to_tail:
  prompt: in-domain
  gates: {accuracy: {min: 0.3}}
  overall: {gates: {gap: {max: 1.0}}}
reliability:
  slices: [known-zero-shot, known-four-shot-2, unseen-zero-shot]
  controls: asked
  choices: 3
  distractors: 6
  unseen: {count: 6, as_of: 2026-11-01, expires: 2090-01-01}
  gates: {cr: {min: 0.3, max_drop: 0.1}}
"""


@pytest.fixture
def shards(pytester):
    """Record a run in ``count`` shards, in folders ``1``, ``2``, ...; return the folders."""

    def record(count, *flags, model=MODEL):
        folders = [str(index) for index in range(1, count + 1)]
        for folder in folders:
            pytester.runpytest(
                model,
                "suites",
                f"--kb-shard={folder}/{count}",
                f"--kb-output-path={folder}",
                *flags,
            )
        return folders

    return record


def contents(folder):
    report = json.loads((folder / "report.json").read_text("utf-8"))
    files = {
        name: (folder / name).read_bytes()
        for name in ("responses.jsonl", "outcomes.jsonl.xz")
    }
    return json.dumps(comparable(report)), files


def made_facts(seed):
    """Return a file of made facts, of two relations and with few objects, that share wrong answers."""
    draw = random.Random(seed)
    lines = []
    for number in range(draw.randint(24, 40)):
        relation = draw.choice(["P36", "P30"])
        lines.append(
            {
                "relation": relation,
                "subject": f"Land {number}",
                "object": f"{relation} {draw.choice('ABCDEFGHIJKLMNOPQ')}",
                "popularity": draw.randint(1, 99),
            }
        )
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.parametrize(("count", "by"), [(3, "fact"), (2, "case")])
def test_merged_shards_are_the_run_without_shards(
    pytester, mini_suite, shards, count, by
):
    mini_suite(ALL)
    pytester.runpytest(*GATE, "--kb-baseline-update=old")
    baseline = "--kb-baseline=old"
    whole = pytester.runpytest(
        OVERCONFIDENT, "suites", baseline, "--kb-output-path=whole"
    )
    folders = shards(count, f"--kb-shard-by={by}", model=OVERCONFIDENT)
    shutil.rmtree(pytester.path / ".kbrel-cache", ignore_errors=True)
    merged = pytester.runpytest(
        "suites", baseline, "--kb-output-path=merged", "--kb-from-run", *folders
    )
    assert merged.ret == whole.ret
    assert contents(pytester.path / "merged") == contents(pytester.path / "whole")
    assert "shard" not in contents(pytester.path / "merged")[0]


def test_the_command_joins_shards_as_pytest_does(pytester, mini_suite, shards, capsys):
    mini_suite(ALL)
    pytester.runpytest(*GATE, "--kb-baseline-update=old")
    flags = (
        OVERCONFIDENT,
        "suites",
        "--kb-baseline=old",
        "--kb-output-path=whole",
        "--junitxml=whole.xml",
    )
    whole = pytester.runpytest(*flags)
    folders = shards(2, model=OVERCONFIDENT)
    capsys.readouterr()
    output = ("--baseline=old", "--output=merged", "--junitxml=merged.xml")
    assert main(["merge", *folders, *output]) == whole.ret
    assert contents(pytester.path / "merged") == contents(pytester.path / "whole")
    assert "reports written to merged" in capsys.readouterr().out
    assert junit_of("merged.xml") == junit_of("whole.xml")
    assert main(["merge", *folders, *output]) == 2
    assert "merged/report.json: exists already" in capsys.readouterr().err
    for folder in ("1", "1/report.json"):
        assert main(["merge", folder, "2", "--output=1", "--force"]) == 2
        assert "is one of the runs to join" in capsys.readouterr().err
    others = ("--baseline=old", "--output=others", "--junitxml=merged.xml")
    assert main(["merge", *folders, *others]) == 2
    assert "merged.xml: exists already" in capsys.readouterr().err
    assert not (pytester.path / "others").exists()
    assert main(["merge", *folders, "--output=more", "--junit-properties"]) == 2
    assert "--junit-properties: found without --junitxml" in capsys.readouterr().err


def test_the_command_reads_settings_where_pytest_does(
    pytester, mini_suite, shards, capsys, monkeypatch
):
    mini_suite(ONE, facts_file(RENAMED))
    pytester.runpytest(*GATE, "--kb-baseline-update=old")
    mini_suite(ONE)
    folders = shards(2, model=OVERCONFIDENT)
    merge = ["merge", *folders, "--output=merged", "--force", "--json"]
    capsys.readouterr()

    def compared(*flags):
        main([*merge, *flags])
        return json.loads(capsys.readouterr().out).get("baseline", "refused")

    assert compared() is None
    pytester.makeini("[pytest]\nkb_baseline = old\n")
    assert (compared(), compared("--baseline=")) == ("old", None)
    monkeypatch.setenv("KB_BASELINE", "prod")
    assert compared() == "refused"


def test_judge_and_baseline_model_are_asked_in_the_shards_only(
    pytester, mini_suite, shards, openai_server, judge
):
    mini_suite(ALL, facts_file(RENAMED))
    openai_server.say = lambda text: "incorrect" if "Tokyo" in text else "correct"
    flags = (f"--kb-baseline-model={KNOWS}", *judge)
    pytester.runpytest(OVERCONFIDENT, "suites", *flags, "--kb-output-path=whole")
    folders = shards(3, *flags, model=OVERCONFIDENT)
    asked = len(openai_server.calls)
    pytester.runpytest("suites", "--kb-output-path=merged", "--kb-from-run", *folders)
    assert main(["merge", *folders, "--output=command"]) in (0, 1)
    assert contents(pytester.path / "merged") == contents(pytester.path / "whole")
    assert contents(pytester.path / "command") == contents(pytester.path / "whole")
    assert len(openai_server.calls) == asked


def junit_of(path):
    """Return properties and cases of a JUnit file: name and place, what became of each, and its figures."""
    root = ElementTree.parse(path).getroot()
    assert junit_errors(path) == []
    cases = {
        (case.get("classname"), case.get("name")): (
            [part.tag for part in case],
            case.findtext("system-out"),
        )
        for case in root.iter("testcase")
    }
    properties = {of.get("name"): of.get("value") for of in root.iter("property")}
    properties.pop("kb_recorded", None)
    return properties, cases


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "count"), [(0, 3), (1, 7), (2, 1), (3, 2), (4, 4)])
def test_merged_shards_of_made_facts_are_the_run_without_shards(
    pytester, mini_suite, shards, seed, count
):
    continents = RELATIONS.replace("P36", "P30").replace("capital", "continent")
    mini_suite(ALL, made_facts(seed))
    (pytester.path / "suites" / "relations.yaml").write_text(
        RELATIONS + continents, "utf-8"
    )
    limit = f"--kb-limit={[5, 0.7, 1.0][seed % 3]}"
    pytester.runpytest(*GATE, limit, "--kb-output-path=whole")
    folders = shards(count, limit)
    pytester.runpytest("suites", "--kb-output-path=merged", "--kb-from-run", *folders)
    assert contents(pytester.path / "merged") == contents(pytester.path / "whole")


def test_shards_are_given_once_each_or_as_the_folder_that_holds_them(
    pytester, mini_suite, shards
):
    mini_suite(ONE)
    shards(2)
    for given, why in (("1", "of 2 shards, missing: 2; "), ("1 2 2", "2: is given tw")):
        result = pytester.runpytest("suites", "--kb-from-run", *given.split())
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert why in result.stderr.str()
    (pytester.path / "all").mkdir()
    for folder in "12":
        (pytester.path / folder).rename(pytester.path / "all" / folder)
    pytester.runpytest("suites", "--kb-from-run=all").assert_outcomes(passed=5)


def test_a_suite_that_is_not_the_one_of_the_shards_is_named(
    pytester, mini_suite, shards, capsys
):
    mini_suite(ONE)
    shards(2)
    changed = "suites/mini.kb.yaml is not the one that the shards asked"

    def merged():
        replayed = one_line(pytester.runpytest("suites", "--kb-from-run=1", "2"))
        capsys.readouterr()
        assert main(["merge", "1", "2", "--output=merged", "--force"]) == 0
        return changed in replayed, changed in " ".join(capsys.readouterr().out.split())

    assert merged() == (False, False)
    # As in a job that joins at another commit: some of what was asked is left out.
    mini_suite(ONE, "".join(facts_file().splitlines(keepends=True)[:-2]))
    assert merged() == (True, True)


def test_shards_of_an_earlier_version_are_read_and_joined(
    pytester, mini_suite, shards, report, monkeypatch
):
    mini_suite(ONE)
    folders = shards(2)
    for folder in folders:
        path = pytester.path / folder / "report.json"
        wire = json.loads(path.read_text("utf-8"))
        for case in wire["cases"]:
            case["verdict"] = "part"
        path.write_text(json.dumps(wire), "utf-8")
        assert {case.verdict for case in read_run(path).cases} == {"inconclusive"}
    monkeypatch.chdir(pytester.path)
    assert main(["merge", *folders, "--output=joined"]) == 0
    assert {case["verdict"] for case in report("joined")["cases"]} == {"pass"}
