"""The run that is built of a session's results, and the files written of it."""

from dataclasses import replace

from pytest_kbrel.session.run_builder import dump_responses
from pytest_kbrel.session.suite_changes import suite_digest
from pytest_kbrel.store.run_store import RunStore
from tests.made_cases import (
    made_case,
    made_result,
    made_suite,
)


def test_a_suite_has_one_digest_wherever_its_values_come_from():
    # The judge may be the default, or typed: another object of the same text.
    judges = ("rules", "".join(["ru", "les"]))
    digests = {
        suite_digest(made_suite(replace(made_case(), judge=judge))) for judge in judges
    }
    assert len(digests) == 1
    assert suite_digest(made_suite(replace(made_case(), judge="other"))) not in digests


def test_responses_that_are_not_recorded_are_named(tmp_path):
    result = made_result()
    lacking = replace(result, requests=3)
    says = f"{result.nodeid}: only 0 of its 3 responses are recorded"
    assert [*dump_responses([lacking], RunStore(), tmp_path)] == [says]
    assert not [*dump_responses([result], RunStore(), tmp_path)]
