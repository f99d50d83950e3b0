from __future__ import annotations

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.records import ANSWER_CUE
from pytest_kbrel.suites.parse import read_suite_file, read_uninformative
from tests.suites.examples import HEAD


@pytest.fixture
def settings_of(tmp_path):
    (tmp_path / "facts.jsonl").touch()
    (tmp_path / "relations.yaml").touch()

    def read(text: str) -> dict:
        path = tmp_path / "t.kb.yaml"
        path.write_text(HEAD + text, encoding="utf-8")
        (probe,) = read_suite_file(path).probes
        return probe.settings

    return read


def test_a_prompt_of_head_to_tail_is_a_name_a_text_or_both(settings_of):
    assert settings_of("head_to_tail: {prompt: concise}") == {"prompt": "concise"}
    assert settings_of("head_to_tail: {prompt: 'Q {question}'}") == {
        "prompt_text": "Q {question}"
    }
    both = "head_to_tail: {prompt: {setting: zero-shot, text: '{question}'}}"
    assert settings_of(both) == {"prompt": "zero-shot", "prompt_text": "{question}"}
    assert settings_of("head_to_tail: {prompt: {setting: in-domain}}") == {
        "prompt": "in-domain"
    }


def test_what_is_the_probes_own_is_no_change(settings_of):
    assert (
        settings_of(f'head_to_tail: {{answer_cue: "{ANSWER_CUE}", stop: ["\\n"]}}')
        == {}
    )
    assert settings_of('monitor: {answer_cue: "", stop: "\\n"}') == {}
    # The published script cuts nothing while the model writes.
    assert "stop" in settings_of('monitor: {variant: published, stop: "\\n"}')
    goes_on = f'reliability: {{prompt: "{{question}} A:", answer_cue: "{ANSWER_CUE}"}}'
    assert settings_of(goes_on)["answer_cue"] == ANSWER_CUE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("head_to_tail:\n  prompt: few-shots", "did you mean 'few-shot'?"),
        (
            "head_to_tail:\n  prompt: 5",
            "must be one of auto, few-shot, zero-shot, in-domain, concise, chat, found 5",
        ),
        (
            "head_to_tail:\n  prompt: {setting: none}",
            "setting of prompt of head_to_tail must be one of",
        ),
        (
            "head_to_tail:\n  prompt: {txt: x}",
            "unknown key 'txt' in prompt of head_to_tail",
        ),
        (
            "head_to_tail:\n  prompt: '{examples} {examples} {question}'",
            "may stand in it once, found 2 times",
        ),
        (
            "monitor:\n  prompt: '{examples} {question}'",
            "unknown placeholder {examples}; allowed: {question}",
        ),
        ("monitor:\n  example_style: turns", "unknown key 'example_style' in monitor"),
        (
            "reliability:\n  choice_prompt: '{question}'",
            "{options} must stand in it once, found nowhere",
        ),
        (
            "monitor:\n  stop: [x, '']",
            "each of stop of monitor must be a list of texts",
        ),
        (
            "monitor:\n  answer_cue:",
            "answer_cue of monitor must be text, found nothing",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(settings_of, text, said):
    with pytest.raises(SuiteError) as error:
        settings_of(text)
    assert said in str(error.value)
    assert str(error.value).split("t.kb.yaml:")[1].startswith("4: ")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("unsur:\n  - x\n", 1, "did you mean 'unsure'?"),
        ("none:\n  - x\nunsure:\n  - '(x'\n", 4, "not a regular expression: '(x'"),
        ("none:\n  - 'x*'\n", 2, "matches every answer"),
        ("none: x\n", 1, "'none' must be a list of regular expressions"),
        ("none: []\n", 1, "at least one item"),
        ("none:\n  - 5\n", 2, "put it in quotes if text is meant"),
        ("- none\n", 1, "must be a mapping"),
        ("{}\n", 1, "no patterns"),
        ("", 1, "the file is empty"),
    ],
)
def test_what_is_no_list_of_patterns_is_refused_with_its_line(
    tmp_path, text, line, said
):
    path = tmp_path / "more.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SuiteError) as caught:
        read_uninformative(path)
    assert f"more.yaml:{line}: " in str(caught.value)
    assert said in str(caught.value)
