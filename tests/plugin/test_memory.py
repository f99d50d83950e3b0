"""The memory of a run does not grow with its requests, and chunks of requests change no result."""

import json
import tracemalloc

import pytest

from pytest_kbrel import probes
from pytest_kbrel.models import scripted
from pytest_kbrel.plugin import worker
from tests.function_model import Forgetful
from tests.plugin.conftest import GATE, MODEL

CHUNK = 20
# In bytes. Without chunks it is 25,000.
LIMIT = 17_000
FRAMES = [
    f"{word} is the town of [X]?"
    for word in ("What", "Which", "Where", "Name what", "Say what")
]


class Quick(Forgetful):
    """Answers at once."""

    def __init__(self):
        super().__init__(
            answers=lambda prompt: f"Town {len(prompt)}", probability=lambda *_: 0.4
        )


@pytest.fixture
def peak(pytester, monkeypatch):
    """Gate a relation of so many facts; return the most that Python held while it was decided, in bytes."""
    monkeypatch.setattr(scripted, "load", lambda spec: Quick())
    monkeypatch.setitem(probes.CHUNK_FACTS, "monitor", CHUNK)
    suite = (
        "suite: large\nfacts: P36-subclass.json\nformat: fktc\nmonitor: {negatives: 5}\n"
        "integrity: {repeated: 1.0, unmoved: 1, below_random: allowed}\n"
    )
    actual = []
    real = worker.CaseRunner.decide

    def decide(self, case, **how):
        tracemalloc.start()
        try:
            return real(self, case, **how)
        finally:
            actual.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    monkeypatch.setattr(worker.CaseRunner, "decide", decide)

    def measure(facts):
        pytester.makefile(".kb.yaml", large=suite)
        lines = [{"relations": FRAMES}]
        for n in range(facts):
            wrong = [f"Town {n} {k}" for k in range(5)]
            lines.append(
                {"subject": f"Land {n}", "object": f"Town {n}", "taxonomy": wrong}
            )
        (pytester.path / "P36-subclass.json").write_text(
            "".join(json.dumps(line) + "\n" for line in lines)
        )
        (pytester.path / "knows.jsonl").write_text('{"default": {"text": "unsure"}}')
        result = pytester.runpytest("large.kb.yaml", MODEL, "-p", "no:logging")
        assert result.ret == 0
        with (pytester.path / "kbrel-report" / "responses.jsonl").open() as file:
            assert sum(1 for _ in file) == facts * 22
        return actual.pop()

    return measure


@pytest.mark.slow
def test_what_is_held_of_a_fact_is_its_outcome_and_not_its_questions(peak):
    few, many = CHUNK, 4 * CHUNK
    # The first run imports.
    peak(few)
    held = (peak(many) - peak(few)) / (many - few)
    assert held < LIMIT, held


def test_decided_cases_are_held_once(pytester, mini_suite):
    mini_suite()
    pytester.makeconftest(
        """
        import pytest

        from pytest_kbrel.plugin.fixtures import results_key

        @pytest.hookimpl(trylast=True)
        def pytest_sessionfinish(session):
            stats = session.config.pluginmanager.get_plugin("terminalreporter").stats
            reports = [one for some in stats.values() for one in some if getattr(one, "when", "") == "call"]
            held = [one.nodeid for one in reports if getattr(one, "kbrel", "")]
            held += [item.nodeid for item in session.items if results_key in item.stash]
            print(f"{len(reports)} reports and {len(session.items)} items, holding {held}")
        """
    )
    result = pytester.runpytest(*GATE, "-s", "-k", "head_to_tail")
    result.stdout.re_match_lines([r".*\d+ reports and 3 items, holding \[\]"])
