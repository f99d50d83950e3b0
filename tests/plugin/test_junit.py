"""The JUnit file of whole sessions: the schema of Jenkins' xUnit plugin, and what readers find in it."""

import junitparser
import pytest

from tests.junit_schema import junit_errors
from tests.plugin.conftest import GATE, OVERCONFIDENT, SUITE, outcomes

FAILING = SUITE.replace("accuracy: {min: 0.3}", "accuracy: {max: 0.1}")


def suite_of(path):
    (suite,) = junitparser.JUnitXml.fromfile(str(path))
    return suite


def test_a_session_writes_what_jenkins_and_gitlab_read(pytester, mini_suite, report):
    mini_suite(FAILING)
    result = pytester.runpytest(OVERCONFIDENT, "suites", "--junitxml=j.xml")
    assert outcomes(result)["failed"] > 0
    assert junit_errors(pytester.path / "j.xml") == []
    suite = suite_of(pytester.path / "j.xml")
    for case in report()["cases"]:
        name = case["id"].partition("::")[2]
        (written,) = [one for one in suite if one.name == name]
        lines = dict(line.split("=", 1) for line in written.system_out.splitlines())
        assert (lines["kb_verdict"], lines["kb_n"]) == (case["verdict"], str(case["n"]))
    properties = {
        one.name: float(one.value)
        for one in suite.properties()
        if "overall" in one.name
    }
    actual = report()["aggregates"]
    for kind, name in (
        ("reliability", "nccr"),
        ("reliability", "iur"),
        ("head_to_tail", "gap"),
    ):
        assert properties[f"kb_{kind}_overall_{name}"] == pytest.approx(
            actual[kind][name], abs=5e-5
        )


def test_the_flag_writes_properties_of_cases(pytester, mini_suite):
    mini_suite()
    pytester.runpytest(*GATE, "-k", "P36", "--junitxml=j.xml", "--kb-junit-properties")
    assert len(junit_errors(pytester.path / "j.xml")) == 1
    (case,) = suite_of(pytester.path / "j.xml")
    assert case.system_out is None
    names = [
        one.name
        for properties in case.iterchildren(junitparser.Properties)
        for one in properties
    ]
    assert names[:2] == ["kb_verdict", "kb_n"]
