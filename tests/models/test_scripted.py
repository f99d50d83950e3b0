from __future__ import annotations

import math
import signal
import subprocess
import sys
import textwrap

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.cache.store import digest_of
from pytest_kbrel.models.registry import (
    check_spec,
    open_model,
    read_spec,
)
from pytest_kbrel.records import (
    Failed,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
)

SCRIPT = """\
rules:
  - contains: capital of France
    text: Paris
    probability: {Paris: 0.9, " New Paris ": [0.5, 0.25]}
  - pattern: 'capital of (\\w+)\\?$'
    text: 'The city of \\1'
    probability: [0.3, 0.2]
  - prompt: Who?
    text: ""
  - prompt: Where?
    steps:
      - {token: New, probability: 0.5}
      - {token: " Delhi", probability: 0.25, watched: 0.125}
  - prompt: When?
    error: out of memory
default:
  text: unsure
  probability: 0.1
"""
JSON_LINES = """\
{"contains": "capital of France", "text": "Paris", "probability": {"Paris": 0.9, "New Paris": [0.5, 0.25]}}

{"pattern": "capital of (\\\\w+)\\\\?$", "text": "The city of \\\\1", "probability": [0.3, 0.2]}
{"prompt": "Who?", "text": ""}
{"default": {"text": "unsure", "probability": 0.1}}
{"prompt": "Where?", "steps": [{"token": "New", "probability": 0.5}, STEP]}
{"prompt": "When?", "error": "out of memory"}
""".replace("STEP", '{"token": " Delhi", "probability": 0.25, "watched": 0.125}')


@pytest.fixture(params=["yaml", "jsonl"])
def model(request, tmp_path):
    path = tmp_path / f"script.{request.param}"
    path.write_text(SCRIPT if request.param == "yaml" else JSON_LINES, encoding="utf-8")
    return open_model(read_spec(f"scripted/{path}"))


def model_of(tmp_path, text, name="other.yaml"):
    path = tmp_path / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return open_model(read_spec(f"scripted/{path}"))


def written(model, prompt, **more):
    (answer,) = model.generate(
        [GenerateRequest(prompt=prompt, max_new_tokens=9, **more)]
    )
    return answer.text if isinstance(answer, Generated) else answer


def scored(model, prompt, continuation):
    (answer,) = model.score([ScoreRequest(prompt=prompt, continuation=continuation)])
    return answer.probabilities if isinstance(answer, Scored) else answer


def test_the_first_rule_for_a_prompt_writes_its_text_and_the_default_all_others(model):
    assert written(model, "What is the capital of France?") == "Paris"
    assert written(model, "What is the capital of Peru?") == "The city of Peru"
    # The pattern is anchored at the end, and a prompt is meant whole.
    assert written(model, "What is the capital of Peru? And") == "unsure"
    assert written(model, "Who?") == ""
    assert written(model, "Who? Who?") == "unsure"


def test_probabilities_are_those_of_a_continuation_or_of_any(model):
    assert scored(model, "the capital of France", " Paris") == (0.9,)
    assert scored(model, "the capital of France", " New Paris") == (0.5, 0.25)
    assert scored(model, "the capital of France", " Rome") == (0.1,)
    assert scored(model, "the capital of Peru?", " in Lima") == (0.3, 0.2)
    assert scored(model, "the capital of Peru?", " Lima") == Failed(
        error="2 probabilities are scripted for the 1 tokens (words) of ' Lima'"
    )
    # A rule without probabilities leaves them to the default, a token each.
    assert scored(model, "Who?", " a b c") == (0.1, 0.1, 0.1)


def test_steps_are_the_scripted_ones_and_else_the_words(model):
    request = GenerateRequest(
        prompt="Where?", max_new_tokens=9, steps=True, watch=(1, 2)
    )
    (answer,) = model.generate([request])
    assert answer.text == "New Delhi"
    assert [(step.token, step.probability, step.watched) for step in answer.steps] == [
        ("New", 0.5, 0.0),
        (" Delhi", 0.25, 0.125),
    ]
    (answer,) = model.generate(
        [GenerateRequest(prompt="x", max_new_tokens=9, steps=True)]
    )
    assert [(step.token, step.probability, step.watched) for step in answer.steps] == [
        ("unsure", 0.1, None)
    ]
    (answer,) = model.generate(
        [GenerateRequest(prompt="Where?", max_new_tokens=1, steps=True)]
    )
    assert (answer.text, answer.finish, len(answer.steps)) == ("New", "length", 1)


def test_without_a_default_an_unknown_prompt_is_a_failure_that_says_so(tmp_path):
    model = model_of(tmp_path, "rules: [{contains: France, text: Paris}]")
    assert written(model, "France") == "Paris"
    for answer, key in (
        (written(model, "x" * 500), "text"),
        (scored(model, "France", " Paris"), "probability"),
    ):
        assert f"other.yaml: no rule with `{key}` matches" in answer.error
        assert "a `default` would answer all others" in answer.error
        assert len(answer.error) < 400 + len(str(tmp_path))


def test_a_probability_may_be_no_number_and_nothing_else_out_of_range(tmp_path):
    assert math.isnan(
        scored(model_of(tmp_path, "default: {probability: .nan}"), "x", " y")[0]
    )
    assert scored(model_of(tmp_path, "default: {probability: 0}"), "x", " y") == (0.0,)
    assert scored(model_of(tmp_path, "default: {probability: 1}"), "x", " y") == (1.0,)


def test_a_delay_waits_and_then_the_next_rules_answer(tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr("time.sleep", waited.append)
    model = model_of(
        tmp_path,
        "rules: [{contains: slow, delay: 2}, {contains: slow, delay: 0.5}]\ndefault: {text: late}",
    )
    assert written(model, "slow") == "late"
    assert sum(waited) == 2.5
    assert written(model, "quick") == "late"
    assert sum(waited) == 2.5


@pytest.mark.parametrize(
    ("status", "ended"), [("true", -signal.SIGKILL), ("0", 0), ("3", 3)]
)
def test_a_crash_ends_the_process_at_once(tmp_path, status, ended):
    (tmp_path / "s.yaml").write_text(
        f"rules: [{{contains: fatal, crash: {status}}}]\ndefault: {{text: alive}}"
    )
    code = """
        import sys
        from pytest_kbrel.models.registry import open_model, read_spec
        from pytest_kbrel.records import GenerateRequest
        model = open_model(read_spec("scripted/s.yaml"))
        for prompt in ("harmless", "fatal"):
            print(model.generate([GenerateRequest(prompt=prompt, max_new_tokens=4)])[0].text, flush=True)
        assert "torch" not in sys.modules
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("alive\n", ended)


def test_a_script_is_known_by_its_answers_and_not_by_its_faults_or_its_place(tmp_path):
    def digest(text, name="one.yaml"):
        return digest_of(model_of(tmp_path, text, name).describe())

    plain = "rules: [{contains: a, text: b, probability: {c: 0.5}}]\ndefault: {text: unsure}"
    assert digest(plain) == digest(plain, "two.yml")
    assert digest(plain) == digest(
        plain.replace("text: b", "text: b, delay: 1, error: failed, crash: 3")
    )
    assert digest(plain) == digest(
        plain.replace("rules: [", "rules: [{contains: a, crash: true}, ")
    )
    rows = '{"contains": "a", "text": "b", "probability": {"c": 0.5}}\n{"default": {"text": "unsure"}}\n'
    assert digest(plain) == digest(rows, "three.jsonl")
    others = [
        plain.replace("contains", "pattern"),
        plain.replace("contains: a", "contains: b"),
        plain.replace("text: b", "text: c"),
        plain.replace("text: b, ", ""),
        plain.replace("{c: 0.5}", "{c: 0.25}"),
        plain.replace("{c: 0.5}", "[0.5]"),
        plain.replace("text: b", "steps: [{token: b}]"),
        plain.replace("text: b", "steps: [{token: b, watched: 0.5}]"),
    ]
    assert len({digest(plain), *map(digest, others)}) == 1 + len(others)


LIST = ".jsonl"


@pytest.mark.parametrize(
    ("ending", "text", "message"),
    [
        (".yaml", "", ":1: the file is empty"),
        (".yaml", "rules: []", ":1: `rules` must be a list of rules with at least"),
        (".yaml", "rule: []", ":1: unknown key 'rule' in a script; allowed: rules, d"),
        (".yaml", "rules:\n  - text: x", ":2: a rule has one of prompt, contains, p"),
        (".yaml", "rules:\n  - contains: x", ":2: a rule needs one of text, steps,"),
        (".yaml", "rules: [{contains: '', text: x}]", "`contains` must be text, not"),
        (".yaml", "rules: [{contains: x, txt: y}]", "unknown key 'txt'"),
        (".yaml", "rules: [{pattern: '(', text: x}]", ":1: not a regular expression"),
        (
            ".yaml",
            "rules:\n  - pattern: '(a)'\n    text: '\\2'",
            ":3: `text` is filled from the pattern's groups",
        ),
        (".yaml", "default: {contains: x, text: y}", "unknown key 'contains' in the d"),
        (".yaml", "default: {text: 5}", ":1: `text` must be text, found 5"),
        (".yaml", "default: {probability: 1.5}", ":1: a probability must be a number"),
        (".yaml", "default: {probability: []}", ":1: `probability` must be a list of"),
        (".yaml", "default: {probability: {x: high}}", ":1: a probability must be a n"),
        (
            ".yaml",
            "default: {steps: [{probability: 1}]}",
            "a step lacks the key 'token",
        ),
        (".yaml", "default: {steps: [{token: 5}]}", ":1: `token` must be text"),
        (".yaml", "default: {error: ''}", ":1: `error` must be text of one line"),
        (".yaml", "default: {delay: -1}", ":1: `delay` must be a number from 0 to 3,6"),
        (".yaml", "default: {crash: false}", ":1: `crash` must be true, or an exit st"),
        (LIST, "", "a script needs `rules` or a `default`, and has neither"),
        (LIST, '{"contains": "x", "text": "y"}\n{"contains": "x"}', ":2: a rule needs"),
        (LIST, '{"contains": "x", "text": "y"}\nnonsense', ":2: not JSON"),
        (LIST, '{"default": {"text": "y"}}\n' * 2, ":2: a second default; the first"),
        (LIST, '{"default": {"text": "y"}, "text": "z"}', "unknown key 'text' in the"),
        (LIST, '{"contains": "x", "steps": [5]}', ":1: a step must be a mapping"),
        (".json", "default: {text: x}", "a script is a file of .yaml, .yml or .jsonl"),
        (".yaml", None, "cannot be read: No such file"),
    ],
)
def test_a_wrong_script_is_refused_with_file_and_line(tmp_path, ending, text, message):
    path = tmp_path / f"wrong{ending}"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ModelError) as caught:
        check_spec(read_spec(f"scripted/{path}"))
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("scripted/", {}, "no script named; the form is scripted/FILE"),
        ("b", {"model_args": "dtype=float32"}, "found the arguments 'dtype=float32'"),
        ("b", {"device": "cpu"}, "device 'cpu' means nothing to a script; allowed is"),
        ("b", {"dtype": "float32"}, "dtype 'float32' means nothing to a script"),
        ("b", {"chat_template": True}, "a script has no chat template; allowed is no"),
    ],
)
def test_a_script_is_a_file_and_has_no_options(text, settings, message):
    with pytest.raises(ModelError) as caught:
        read_spec(text if "/" in text else f"scripted/{text}.yaml", **settings)
    assert message in str(caught.value)
