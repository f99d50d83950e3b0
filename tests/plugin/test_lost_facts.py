"""Facts, slices and files that a suite has lost since its baseline was blessed: none makes a gate greener."""

import json
from xml.etree import ElementTree

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.reports.json_report import read_run
from pytest_kbrel.reports.rendering import comment_markdown
from tests.plugin.conftest import HEADER, one_line, script

GATED = HEADER + (
    "{more}head_to_tail:\n  slices: [{slices}]\n  prompt: zero-shot\n"
    "  gates: {{accuracy: {{max_drop: 0.05, min: 0.1}}}}\n"
    "  overall: {{gates: {{accuracy: {{min: 0.1}}}}}}\n"
)
ALL = "places-tail, places-head"
BASELINE = "--kb-baseline=prod"
TAIL = {f"Land{n}x": f"Town{n}x" for n in range(40)}
HEAD = {"China": "Beijing", "Japan": "Tokyo"}
KNOWN = [(f"capital of {land}", town) for land, town in {**TAIL, **HEAD}.items()]
# What a candidate has lost.
LOST = list(TAIL)[:18]


def suite(more="", slices=ALL):
    return GATED.format(more=more, slices=slices)


def facts(*left_out, **objects):
    """Return the file of the facts without some, and with other objects of some."""
    lines = [
        {"relation": "P36", "subject": land, "object": town, "popularity": popularity}
        for of, popularity in ((TAIL, 1), (HEAD, 3))
        for land, town in {**of, **{k: objects[k] for k in of.keys() & objects}}.items()
        if land not in left_out
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def blessed(pytester, mini_suite):
    """Bless a model that knows all capitals, and return the flags of a candidate that has lost some."""
    mini_suite(suite(), facts())
    for name, known in (("knows", KNOWN), ("forgets", KNOWN[len(LOST) :])):
        text = script(known, r"New \1")
        (pytester.path / f"all-{name}.jsonl").write_text(text, "utf-8")
    result = pytester.runpytest(*knows()[:2], "--kb-baseline-update=prod")
    result.assert_outcomes(passed=4)


def knows(model="knows"):
    return f"--kb-model=scripted/all-{model}.jsonl", "suites", BASELINE


def test_facts_deleted_from_the_suite_are_told_everywhere_and_are_no_pass(
    pytester, mini_suite, blessed, cases
):
    assert pytester.runpytest(*knows("forgets")).ret == pytest.ExitCode.TESTS_FAILED
    assert cases()["head_to_tail[places-tail]"]["verdict"] == "fail"
    mini_suite(suite(), facts(*LOST))
    result = pytester.runpytest(*knows("forgets"), "-q", "--junitxml=j.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = "18 facts of the baseline not asked any more"
    assert told in one_line(result)
    assert told in (pytester.path / "kbrel-report/summary.md").read_text("utf-8")
    assert told in comment_markdown(read_run(pytester.path / "kbrel-report"))
    properties = ElementTree.parse(pytester.path / "j.xml").iter("property")
    assert any(of.get("value", "").startswith(told) for of in properties)
    decided = cases()
    tail, over, pooled = (
        decided[f"{name}]"]
        for name in (
            "head_to_tail[places-tail",
            "head_to_tail[overall",
            "pooled[overall",
        )
    )
    for case in (tail, over, pooled):
        assert case["verdict"] == "not comparable"
        assert {gate["verdict"] for gate in case["gates"]} <= {"not comparable"}
    assert decided["head_to_tail[places-head]"]["verdict"] == "inconclusive"
    assert len(tail["unmatched"]["lacking"]) == 18
    assert "18 of the 40 facts of the base" in tail["gates"][0]["reason"]
    # Decided again, and joined, it is the same.
    again = ["--kb-from-run=kbrel-report", "--kb-output-path=again", BASELINE]
    assert pytester.runpytest("suites", *again).ret == 1
    assert main(["merge", "kbrel-report", "--output=merged", "--baseline=prod"]) == 1
    for folder in ("again", "merged"):
        verdicts = {name: case["verdict"] for name, case in cases(folder).items()}
        assert verdicts == {name: case["verdict"] for name, case in decided.items()}


@pytest.mark.parametrize(("limit", "ret"), [("0.05", 0), ("0.04", 1)])
def test_a_suite_may_allow_a_share_of_facts_to_be_lost(
    pytester, mini_suite, blessed, limit, ret
):
    mini_suite(suite(f"integrity: {{unasked: {limit}}}\n"), facts(*LOST[:2]))
    result = pytester.runpytest(*knows())
    assert result.ret == ret
    assert "2 facts of the baseline not asked any more" in one_line(result)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        # Fewer by the suite's own limit, and by another subject.
        (suite().replace("  prompt", "  limit: 30\n  prompt"), facts()),
        (suite(), facts().replace("Land0x", "Land of 0")),
        # The same fact, asked for something else.
        (suite(), facts(Land0x="Town of 0")),
    ],
)
def test_facts_that_others_replace_are_lost(
    pytester, mini_suite, blessed, cases, text, rows
):
    mini_suite(text, rows)
    assert pytester.runpytest(*knows()).ret == pytest.ExitCode.TESTS_FAILED
    assert cases()["head_to_tail[places-tail]"]["verdict"] == "not comparable"


@pytest.mark.parametrize(
    "flags", ["-k tail", "--kb-limit=20", "--kb-until-decided=20", "--kb-limit=0.5"]
)
def test_what_a_flag_leaves_out_is_not_lost(pytester, blessed, report, flags):
    result = pytester.runpytest(*knows(), *flags.split())
    assert result.ret == 0
    assert "not asked any more" not in result.stdout.str()
    assert report()["problems"] == []


def test_cases_and_files_that_are_gone_are_a_problem(
    pytester, mini_suite, blessed, report
):
    other = mini_suite(suite(), facts(), name="other")
    model, *_ = knows()
    pytester.runpytest(model, "suites", "--kb-baseline-update=prod")
    # A file that is there was not selected.
    assert pytester.runpytest(model, "suites/mini.kb.yaml", BASELINE).ret == 0
    other.unlink()
    mini_suite(suite(slices="places-tail"), facts())
    assert pytester.runpytest(*knows()).ret == pytest.ExitCode.TESTS_FAILED
    case, file = sorted(report()["problems"])
    first = "(first: mini.kb.yaml::head_to_tail[places-head])"
    assert case.startswith(f"mini.kb.yaml has lost 1 of the baseline's cases {first}")
    assert file.startswith("other.kb.yaml has lost 2 of the baseline's cases")
    assert main(["merge", "kbrel-report", "--output=merged", "--baseline=prod"]) == 1
    mini_suite(suite("integrity: {unasked: 1}\n", "places-tail"), facts())
    assert pytester.runpytest(*knows()).ret == pytest.ExitCode.TESTS_FAILED
    assert report()["problems"] == [file]
    # To bless anew is what a suite needs that is smaller on purpose.
    assert pytester.runpytest(*knows(), "--kb-baseline-update=new").ret == 0
    assert (pytester.path / "baselines/new/baseline.json").is_file()
