"""The fuzzing itself: its targets are alive, it sees faults, and a finding can be repeated."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import pickle
import types
from pathlib import Path

import hypothesis
import pytest

from tests.fuzz import damage, engine, targets
from tests.fuzz.raw_server import RawServer, Reply, Said
from tests.fuzz.targets import TARGETS, Example
from tests.fuzz.worker import Done, Job, run

GREEN = json.dumps({"summary": {"verdict": "pass"}, "cases": [{"id": "a", "n": 3}]})
NOTHING = Example(Job({}, ()))


def drawn(examples: targets.Examples, count: int) -> list[Example]:
    """Return the first examples of a strategy, the same ones every time."""
    result: list[Example] = []

    def draw(example: Example) -> None:
        result.append(example)

    settings = hypothesis.settings(
        max_examples=count,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    settings(hypothesis.given(examples)(draw))()
    return result


@pytest.fixture
def _as_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in os.environ if name.startswith(("KB_", "OPENAI_", "PYTEST_"))
    ]:
        monkeypatch.delenv(name)


@pytest.mark.slow
@pytest.mark.usefixtures("_as_a_worker")
@pytest.mark.parametrize("name", TARGETS)
def test_a_target_draws_damaged_input_and_nothing_is_wrong_with_a_little_of_it(
    name: str,
) -> None:
    examples = drawn(TARGETS[name].examples(run), 24)
    assert len({pickle.dumps(example) for example in examples}) > 12
    for example in examples[:: len(examples) // 2]:
        assert engine.problem_of(example, run(example.job)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_sound_input_ends_as_it_should_and_damaged_input_without_a_fault(
    name: str,
) -> None:
    with engine.Worker() as worker:

        def done(job: Job) -> Done:
            ended = worker.run(job)
            assert isinstance(ended, Done), ended
            return ended

        for job, code in TARGETS[name].sound(done):
            assert done(job).code == code
        for example in drawn(TARGETS[name].examples(done), 36):
            assert engine.problem_of(example, worker.run(example.job)) == ""


@pytest.mark.parametrize(
    ("code", "text", "problem"),
    [
        (0, "", ""),
        (1, "E   no answer: ValueError: x", ""),
        (2, "suites/t.kb.yaml:3: choices must be a whole number", ""),
        (3, "", "exit code 3"),
        (
            None,
            "Traceback (most recent call last):\nKeyError: 'x'",
            "an exception left pytest: KeyError: 'x'",
        ),
        (
            1,
            "INTERNALERROR> KeyError: 'x'",
            "a raw Python error: INTERNALERROR> KeyError: 'x'",
        ),
        (
            1,
            "pytest_kbrel/suites/x.py:3: TypeError",
            "a raw Python error: pytest_kbrel/suites/x.py:3:",
        ),
        (1, "E   TypeError: y", "a raw Python error: E   TypeError: y"),
        (
            1,
            "  <unknown>:1: SyntaxWarning: z",
            "a raw Python error: <unknown>:1: SyntaxWarning",
        ),
        (1, "error: MemoryError", "a raw Python error: MemoryError"),
    ],
)
def test_how_a_session_may_end(code: int | None, text: str, problem: str) -> None:
    assert engine.problem_of(NOTHING, Done(code, text, GREEN)) == problem


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        (GREEN, ""),
        ("", "a pass without a whole report"),
        (GREEN.replace("3", "NaN"), "a pass without a whole report"),
        (GREEN.replace("3", "0"), "a pass over no facts in a"),
        (GREEN.replace("pass", "fail"), "a pass whose report says fail of 1 cases"),
    ],
)
def test_what_a_pass_needs(report: str, problem: str) -> None:
    assert engine.problem_of(NOTHING, Done(0, "", report)) == problem


def test_a_pass_without_a_baseline_is_one_where_none_was_named() -> None:
    done = Done(0, "", GREEN.replace("pass", "no baseline"))
    assert engine.problem_of(NOTHING, done) == ""
    named = Example(Job({}, ("--kb-baseline=old",)))
    assert (
        engine.problem_of(named, done)
        == "a pass whose report says no baseline of 1 cases"
    )


def test_a_pass_may_be_ruled_out() -> None:
    assert (
        engine.problem_of(Example(Job({}, ()), "it is damaged"), Done(0, "", GREEN))
        == "a pass: it is damaged"
    )
    for text, expected in (
        ("suite: [", "is no YAML"),
        ("suite: 5\n", "JSON Schema refuses"),
        ("a: 1\na: 2\n", "no YAML"),
    ):
        example = Example(Job({"t": text.encode()}, (), suite="t"), schema=True)
        assert expected in engine.problem_of(
            example, Done(1, "", json.dumps(json.loads(GREEN), indent=1))
        )
        assert engine.problem_of(example, Done(1, "", "")) == ""


def test_faults_are_told_apart_by_their_words() -> None:
    same = {
        engine.signature(f"a raw Python error: KeyError: 'x{n}' at {n}")
        for n in range(3)
    }
    assert len(same) == 1
    assert engine.signature("exit code 3") != engine.signature(
        "a hang: nothing after 10 seconds"
    )


def test_a_finding_is_saved_as_files_and_read_again(tmp_path: Path) -> None:
    reply = Reply(body=b"\xff\0", head=b"x", headers=(("a", "b"),))
    job = Job(
        {"suites/t.kb.yaml": b"\xff\0suite"},
        ("suites", "-q"),
        Said(reply, (reply, Reply())),
    )
    for example in (
        Example(job, "why"),
        Example(dataclasses.replace(job, said=None), schema=True),
    ):
        assert (
            engine.load(engine.save(example, "exit code 3", tmp_path, "suites"))
            == example
        )


class Made(engine.Worker):
    """A worker whose sessions all are green, but that large files make an internal error."""

    def run(self, job: Job) -> Done | str:
        return Done(3 if len(job.files["n"]) > 500 else 0, "", GREEN)


def test_planted_faults_are_found_made_small_and_not_found_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count()
    clock = types.SimpleNamespace(monotonic=lambda: next(ticks) / 1000)
    monkeypatch.setattr(engine, "Worker", Made)
    monkeypatch.setattr(engine, "time", clock)
    examples = hypothesis.strategies.integers(0, 1000).map(
        lambda n: Example(Job({"n": b"x" * n}, ("-q",)), "planted" if n > 7 else "")
    )
    tally = engine.fuzz(
        targets.Target("t", lambda _: (), lambda _: examples), 1.0, tmp_path, seed=1
    )
    assert sorted(tally.problems) == ["a pass: planted", "exit code 3"]
    sizes = {
        folder.name: (folder / "files" / "n").stat().st_size
        for folder in tmp_path.iterdir()
    }
    assert sorted(sizes.values()) == [8, 501]
    assert "2 found, seed 1" in tally.line()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("while True: pass", "a hang: nothing after 10 seconds"),
        ("import os; os._exit(9)", "the process died with exit status 9"),
        ("x = bytearray(3 << 30)", "a raw Python error: E       MemoryError"),
    ],
)
def test_a_worker_is_watched(
    body: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    example = Example(
        Job({"test_it.py": f"def test_it():\n    {body}\n".encode()}, ("-q",))
    )
    with engine.Worker() as worker:
        assert engine.problem_of(example, worker.run(example.job)) == problem
        assert engine.problem_of(NOTHING, worker.run(NOTHING.job)) == ""


def test_edits_change_a_tree() -> None:
    def edited(text: bytes, *edits: tuple[str, int, int, object]) -> bytes:
        return damage.write_json(damage.edited(damage.read_json(text), edits))

    text = b'{"a": 1, "b": [2, 3]}'
    assert edited(text) == text
    assert edited(text, ("drop", 1, 0, None)) == b'{"b": [2, 3]}'
    assert (
        edited(text, ("double", 1, 0, damage.Verbatim("NaN")))
        == b'{"a": NaN, "a": 1, "b": [2, 3]}'
    )
    assert edited(text, ("rename", 1, 0, "é")) == b'{"\\u00e9": 1, "b": [2, 3]}'
    assert edited(text, ("copy", 1, 2, None)) == b'{"a": [2, 3], "b": [2, 3]}'
    assert edited(text, ("swap", 1, 2, None)) == b'{"b": 1, "a": [2, 3]}'
    assert edited(text, ("wrap", 1, 0, None)) == b'{"a": [1], "b": [2, 3]}'
    assert edited(text, ("tail", 2, 1, None)) == b'{"a": 1, "b": [2]}'
    assert edited(text, ("replace", 0, 0, "x")) == b'"x"'
    assert edited(text, ("number", 2, 0, -1)) == b'{"a": 1, "b": [2, -1]}'
    assert edited(b'{"a": 1, "b": "c"}', ("text", 7, 0, "")) == b'{"a": 1, "b": ""}'


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (("flip", 0, 0, b""), b"`: 1\nb: 2\n"),
        (("cut", 0, 2, b""), b"1\nb: 2\n"),
        (("end", 1 << 15, 0, b""), b"a: 1\n"),
        (("insert", 0, 0, b"#"), b"#a: 1\nb: 2\n"),
        (("again", 0, 1, b""), b"a:a: 1\nb: 2\n"),
        (("token", 0, 0, b".nan"), b"a: .nan\nb: 2\n"),
        (("newlines", 0, 0, b""), b"a: 1\r\nb: 2\r\n"),
        (("encode", 0, 1, b""), b"\xef\xbb\xbfa: 1\nb: 2\n"),
    ],
)
def test_edits_change_bytes(edit: tuple[str, int, int, bytes], expected: bytes) -> None:
    assert damage.changed(b"a: 1\nb: 2\n", [edit]) == expected


def test_a_reply_can_lie_about_its_length() -> None:
    import urllib.request

    said = Said(
        Reply(body=b"list"),
        (Reply(body=b"first"), Reply(body=b"second", framing="chunked")),
    )
    with RawServer(said) as server:
        texts = [
            urllib.request.urlopen(f"{server.url}/{path}").read()
            for path in ("x", "models", "x", "x")
        ]
    assert texts == [b"first", b"list", b"second", b"first"]
    assert b"content-length: 2\r\n" in Reply(body=b"abcd", framing="short").wire()
