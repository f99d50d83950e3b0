from __future__ import annotations

import pytest
import transformers as tf

from pytest_kbrel.models.chat import KNOWN, ThoughtMarks, marks_of
from pytest_kbrel.models.checkpoint.endings import Endings
from pytest_kbrel.models.checkpoint.model import Thinker
from pytest_kbrel.models.tokens import Prompt
from pytest_kbrel.records import Failed, GenerateRequest
from tests.models.tiny_checkpoints import EOS, make_tokenizer

THINK = ThoughtMarks(opening="<think>", closing="</think>")
PROMPT = "Who? "


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """Two tokenizers: to one the marks are special tokens, to the other many pieces."""
    result = {}
    for name, added in (("tokens", ["<think>", "</think>"]), ("pieces", [])):
        folder = tmp_path_factory.mktemp(name)
        make_tokenizer(folder, "bos")
        result[name] = tf.AutoTokenizer.from_pretrained(folder)
        result[name].add_special_tokens({"additional_special_tokens": added})
    return result


class Writer:
    """A model that writes one reply behind a prompt, wherever in it it is asked to go on."""

    def __init__(self, tokenizer, prompt, reply):
        self._tokenizer = tokenizer
        self._prompt = self.ids(prompt)
        self._reply = (*self.ids(reply), EOS)
        self.asked = []

    def ids(self, text):
        return tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def write(self, prompts, endings):
        yield [
            (n, self._continued(prompt, endings)) for n, prompt in enumerate(prompts)
        ]

    def _continued(self, prompt, endings):
        assert prompt.ids[: len(self._prompt)] == self._prompt
        written = prompt.ids[len(self._prompt) :]
        assert written == self._reply[: len(written)], (
            "it is asked to go on from what it never wrote"
        )
        assert EOS not in written, "a text that has ended is gone on with"
        left = self._reply[len(written) :][: prompt.request.max_new_tokens]
        self.asked.append(
            (len(written), prompt.request.stop, prompt.request.max_new_tokens)
        )
        return endings.cut(left, prompt.request.stop)


@pytest.fixture(params=["tokens", "pieces"])
def answered(request, tokenizers):
    """Return a function that gives what a thinking model answered."""
    tokenizer = tokenizers[request.param]

    def answer(reply, prompt=PROMPT, *, marks=THINK, most=200, longest=None, **options):
        writer = Writer(tokenizer, prompt, reply)
        answers = Endings(tokenizer, (EOS,))
        thinker = Thinker(writer.write, marks, answers, most=most, longest=longest)
        asked = GenerateRequest(
            prompt="", **{"max_new_tokens": 20, "stop": ("\n",), **options}
        )
        ((place, result),) = [
            one
            for batch in thinker.ready([Prompt(ids=writer.ids(prompt), request=asked)])
            for one in batch
        ]
        assert place == 0
        answer.asked = writer.asked
        return result

    return answer


@pytest.mark.parametrize(
    ("reply", "thought", "text"),
    [
        ("<think>\nIt is\na city.\n</think>\n\nParis", "It is\na city.", "Paris"),
        (
            "<think>\nIt is\na city.\n</think>\n\nParis\nTokyo",
            "It is\na city.",
            "Paris",
        ),
        ("\n<think>\n\n</think>\n\nParis", "", "Paris"),
        ("<think></think>Paris", "", "Paris"),
        ("<think>a city</think> Paris", "a city", "Paris"),
        ("Paris", "", "Paris"),
        ("Paris\n<think>\n", "", "Paris"),
        ("Paris <think> Tokyo\n", "", "Paris <think> Tokyo"),
    ],
)
def test_the_answer_is_what_stands_behind_the_thought(answered, reply, thought, text):
    result = answered(reply)
    # As everywhere, special tokens are no part of an answer.
    assert result.text.replace("  ", " <think> ") == text
    assert (result.thought, result.finish) == (thought, "stop")
    assert bool(result.thought_tokens) is reply.lstrip().startswith("<think>")


def test_a_thought_gets_the_room_that_prompt_and_answer_leave(answered):
    thought = "It is a very large city. " * 4
    result = answered(
        f"<think>{thought}</think>Paris", longest=20, most=1000, max_new_tokens=4
    )
    assert result.thought_tokens <= 20 - 4
    assert (result.text, result.finish) == ("", "length")
    full = answered(
        "It is</think>Paris", prompt="Who? <think>", longest=5, max_new_tokens=20
    )
    assert isinstance(full, Failed)
    assert "no room to think" in full.error


def test_steps_and_beams_are_written_without_a_thought(answered):
    for options in ({"steps": True}, {"num_beams": 2}):
        result = answered("<think>\na city</think>Paris", **options)
        assert result.thought_tokens == 0
        assert len(answered.asked) == 1


@pytest.mark.parametrize("marks", KNOWN, ids=lambda marks: marks.opening)
def test_known_marks_are_found_in_a_reply(marks):
    whole = f"{marks.opening}\nIt is a city.\n{marks.closing}\n\nParis"
    assert marks_of(whole) == marks
    assert marks.split(whole) == ("It is a city.", "\n\nParis")
    assert marks.split(whole.removeprefix(marks.opening)) == (
        "It is a city.",
        "\n\nParis",
    )
    assert marks.split(f"{marks.opening}It is") == ("It is", "")
    assert marks.split("Paris") == ("", "Paris")
    assert marks_of("Paris") is None
    assert marks.opened_by(f"Who? {marks.opening}\n")
    assert not marks.opened_by(f"Who? {marks.opening}\n{marks.closing}")
