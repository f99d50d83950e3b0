"""Suites, models and fixtures for real sessions that take about a second."""

import json
import subprocess
import sys
import time

import pytest

# Capitals the embedded checkpoint knows, with a popularity that makes all three buckets.
CAPITALS = (
    ("China", "Beijing", 70),
    ("India", "New Delhi", 26),
    ("United States", "Washington", 26),
    ("Russia", "Moscow", 48),
    ("Japan", "Tokyo", 40),
    ("Germany", "Berlin", 30),
    ("France", "Paris", 28),
    ("Italy", "Rome", 26),
    ("Spain", "Madrid", 24),
    ("Poland", "Warsaw", 20),
    ("Portugal", "Lisbon", 12),
    ("Norway", "Oslo", 8),
)
HEADER = "suite: mini\nfacts: facts.jsonl\n"
# Other objects than the models answer: rules call these answers wrong.
RENAMED = {
    "China": "Dadu",
    "Japan": "Edo",
    "France": "Lutetia",
    "Italy": "Ostia",
    "Spain": "Toledo",
    "Poland": "Gniezno",
    "Norway": "Kristiania",
}
SUITE = """\
suite: mini
facts: facts.jsonl
monitor:
  negatives: 2
  gates:
    accuracy_base: {min: 0.3, max_drop: 0.1}
head_to_tail:
  prompt: zero-shot
  gates:
    accuracy: {min: 0.3}
  overall:
    gates:
      gap: {max: 1.0}
reliability:
  slices: [known-zero-shot, unseen-zero-shot]
  choices: 3
  distractors: 6
  unseen: {count: 6, as_of: 2026-11-01, expires: 2090-01-01}
  gates:
    cr: {min: 0.3}
"""
ONE = HEADER + "head_to_tail:\n  prompt: zero-shot\n"
# With a gate that every model passes.
GATED = ONE + "  gates: {accuracy: {min: 0.0}}\n"
RELATIVE = """\
suite: mini
facts: facts.jsonl
reliability:
  slices: [known-zero-shot, unseen-zero-shot]
  choices: 3
  distractors: 6
  unseen: {count: 40, as_of: 2026-11-01, expires: 2090-01-01}
  gates:
    cr: {max_drop: 0.05}
    ur: {max_drop: 0.05}
"""
RELATIONS = """\
P36:
  label: capital
  domain: places
  frames:
    - What is the capital of [X]?
    - Which city is the capital of [X]?
"""


def script(answers, otherwise="unsure", shift=0.0, text=""):
    """Return the script of a model that knows these answers, by what its question ends with.

    ``otherwise`` is its answer to every other question, ``shift`` is taken from each probability. ``text``
    is what it writes in place of all that it knows.
    """
    rules = []
    for number, (question, answer) in enumerate(answers):
        # Only the last question counts: examples may stand before it.
        pattern = rf"{question}\?[^?]*$"
        probability = 0.9 - 0.01 * number - shift
        after_answer = {answer: round(probability + 0.08, 4)}
        rules += [
            {"pattern": rf"^{answer}\. .*{pattern}", "probability": after_answer},
            {
                "pattern": pattern,
                "text": text or answer,
                "probability": {answer: round(probability, 4)},
            },
        ]
    # The first name in a question: not every wrong answer is the same then.
    rules.append(
        {"pattern": r"Question: [^?]*? ([A-Z]\w+)[^?]*\?[^?]*$", "text": otherwise}
    )
    rules.append({"default": {"text": "unsure", "probability": 0.01}})
    return "".join(json.dumps(rule) + "\n" for rule in rules)


KNOWN = tuple((f"capital of {country}", city) for country, city, _ in CAPITALS)
KNOWS = "scripted/knows.jsonl"
# The flags of a run of each: of the model that knows, and of two candidates.
MODEL = f"--kb-model={KNOWS}"
GATE = (MODEL, "suites")
OVERCONFIDENT = "--kb-model=scripted/overconfident.jsonl"
INT4 = "--kb-model=scripted/int4.jsonl"
INVENTS = r"New \1"
SCRIPTS = {
    "knows": script(KNOWN),
    "overconfident": script(KNOWN, INVENTS),
    "int4": script((("capital of Norway", "Bergen"), *KNOWN), shift=0.03),
}


def facts_file(objects=None, aliases=None):
    """Return the file of the capitals; ``objects`` replaces some of them, ``aliases`` adds other names."""
    lines = [
        {
            "relation": "P36",
            "subject": subject,
            "object": (objects or {}).get(subject, city),
            "popularity": people,
            "aliases": list((aliases or {}).get(subject, ())),
        }
        for subject, city, people in CAPITALS
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def one_line(result):
    """Return what was printed, however it was wrapped."""
    return " ".join(result.stdout.str().split())


def outcomes(result):
    """Return how many tests ended how, as pytest counts them."""
    return {
        key: value for key, value in result.parseoutcomes().items() if key != "warnings"
    }


def start(pytester, *args, **how):
    """Start a session in a process group of its own; ``how`` is for the process."""
    line = [sys.executable, "-m", "pytest", *args, "-p", "no:cacheprovider"]
    how = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT} | how
    return subprocess.Popen(line, cwd=pytester.path, start_new_session=True, **how)


def wait_until(condition, seconds=300):
    """Wait so long for ``condition``; return whether it holds in the end."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KB_JUDGE_ARGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _few_plugins(request, monkeypatch):
    """Start sessions under test without plugins of others: each worker would import them again."""
    if "pytester" in request.fixturenames:
        request.getfixturevalue("pytester")
        monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:anyio")


@pytest.fixture
def mini_suite(pytester):
    """Write ``suites/mini.kb.yaml`` with its facts; ``text`` replaces the suite, ``facts`` the facts."""

    def write(text=SUITE, facts=None, name="mini"):
        folder = pytester.path / "suites"
        folder.mkdir(exist_ok=True)
        (folder / "facts.jsonl").write_text(
            facts_file() if facts is None else facts, "utf-8"
        )
        (folder / "relations.yaml").write_text(RELATIONS, "utf-8")
        for name_of_script, lines in SCRIPTS.items():
            (pytester.path / f"{name_of_script}.jsonl").write_text(lines, "utf-8")
        path = folder / f"{name}.kb.yaml"
        path.write_text(text, "utf-8")
        return path

    return write


@pytest.fixture
def report(pytester):
    """Read the report of the latest run."""

    def read(folder="kbrel-report"):
        text = (pytester.path / folder / "report.json").read_text("utf-8")
        return json.loads(text)

    return read


@pytest.fixture
def cases(report):
    """Read the cases of the latest report, by their ids without the file of the suite."""
    return lambda *folder: {
        case["id"].partition("::")[2]: case for case in report(*folder)["cases"]
    }


@pytest.fixture
def slices(report):
    """Read the cases of the latest report without those over several slices."""
    return lambda *folder: [
        case for case in report(*folder)["cases"] if not case["aggregate"]
    ]


@pytest.fixture
def responses(pytester):
    """Read the recorded responses of the latest run."""

    def read(folder="kbrel-report"):
        text = (pytester.path / folder / "responses.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]

    return read


@pytest.fixture
def judge(openai_server):
    """Return the flags of a judge on the loopback server."""
    return (
        "--kb-judge=openai/judge",
        f"--kb-judge-args=base_url={openai_server.base_url}",
    )
