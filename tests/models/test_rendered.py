"""The prompt of a request as a person is shown it: what the model reads, with nothing hidden."""

from __future__ import annotations

import json

import pytest
import transformers as tf

from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.openai.spec import parse_openai
from pytest_kbrel.models.tokens import PromptEncoder
from pytest_kbrel.records import GenerateRequest, ScoreRequest
from tests.models.tiny_checkpoints import make_tokenizer

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
ASKED = GenerateRequest(prompt="Paris is", max_new_tokens=3)
FULL = GenerateRequest(
    prompt="Oslo?", max_new_tokens=3, system="Be brief.", turns=(("Rome?", "yes"),)
)
AS_TEXT = "Be brief.\n\nRome? yes\n\nOslo?"
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Rome?"},
    {"role": "assistant", "content": "yes"},
    {"role": "user", "content": "Oslo?"},
]


@pytest.fixture
def encoder_of(tmp_path):
    def make(around="bos", *, template=None, encoder_decoder=False, **options):
        make_tokenizer(tmp_path, around)
        tokenizer = tf.AutoTokenizer.from_pretrained(tmp_path)
        tokenizer.chat_template = template
        return PromptEncoder(tokenizer, encoder_decoder=encoder_decoder, **options)

    return make


def test_a_chat_template_is_applied(encoder_of):
    encoder = encoder_of(template=TEMPLATE, chat_template=True)
    turns = "[system] Be brief.</s>[user] Rome?</s>[assistant] yes</s>[user] Oslo?</s>[assistant]"
    assert encoder.rendered(FULL) == f"<s>{turns}"
    without = encoder_of(template=TEMPLATE, chat_template=True, add_bos=False).rendered(
        FULL
    )
    assert "<s>" not in without
    assert without.replace(" ", "") == turns.replace(" ", "")


@pytest.mark.parametrize(
    ("template", "left_out"),
    [
        ("{{ messages[-1]['content'] }}", "earlier turns out, and examples are"),
        (
            "{{ messages[0]['content'] }}{{ messages[-1]['content'] }}",
            "earlier turns out, and examples are",
        ),
    ],
)
def test_what_a_template_would_leave_out_is_an_error(encoder_of, template, left_out):
    encoder = encoder_of(template=template, chat_template=True)
    assert encoder.rendered(ASKED).endswith("Paris is")
    for request in (
        FULL,
        ScoreRequest(prompt="a", continuation=" b", system="s", turns=FULL.turns),
    ):
        with pytest.raises(ValueError, match=left_out):
            encoder.prompt(request)


@pytest.mark.parametrize(
    ("endpoint", "shown"), [("chat", MESSAGES), ("completions", AS_TEXT)]
)
def test_of_a_server_it_is_what_the_server_is_sent(endpoint, shown):
    model = OpenAIModel(
        parse_openai("openai/m", f"base_url=http://localhost:1/v1,endpoint={endpoint}")
    )
    result = model.rendered(FULL)
    assert (json.loads(result) if endpoint == "chat" else result) == shown
    model.close()
