from __future__ import annotations

import json

import pytest
import transformers as tf

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.arguments import parse_chat_args
from pytest_kbrel.models.chat import (
    ChatArgs,
    ChatTemplate,
    message,
)
from pytest_kbrel.models.checkpoint.checks import check_endings
from pytest_kbrel.models.tokens import PromptEncoder
from pytest_kbrel.records import GenerateRequest, ScoreRequest
from tests.models.chat_shapes import SHAPES
from tests.models.tiny_checkpoints import make_tokenizer

ASKED = [message("user", "Which city?")]
NOTHING, OFF = ChatArgs(), ChatArgs(enable_thinking=False)


@pytest.fixture(scope="module")
def tokenizer_of(tmp_path_factory):
    def make(shape):
        folder = tmp_path_factory.mktemp("tokenizer")
        make_tokenizer(folder, "bos", chat_template=SHAPES[shape])
        return tf.AutoTokenizer.from_pretrained(folder)

    return make


@pytest.fixture
def encoder_of(tokenizer_of):
    def make(shape, chat=NOTHING):
        return PromptEncoder(
            tokenizer_of(shape), encoder_decoder=False, chat_template=True, chat=chat
        )

    return make


@pytest.mark.parametrize(
    ("shape", "args", "ends"),
    [
        ("qwen3", ChatArgs(), "<|im_start|>assistant\n<think>\n\n</think>\n\n"),
        ("qwen3", OFF, "<|im_start|>assistant\n<think>\n\n</think>\n\n"),
        ("llama3", ChatArgs(), "assistant<|end_header_id|>\n\n"),
        ("gemma3", ChatArgs(), "<start_of_turn>model\n"),
        ("llama2", ChatArgs(), "Which city? [/INST]"),
        ("channels", ChatArgs(), "<|start|>assistant<|channel|>final<|message|>"),
        ("writes-its-own", OFF, "<|Assistant|>"),
    ],
)
def test_an_answer_is_scored_where_the_template_puts_it(
    tokenizer_of, shape, args, ends
):
    result = ChatTemplate(tokenizer_of(shape), args).answer_prompt(ASKED)
    assert result.endswith(ends)
    assert result.count("Which city?") == 1


@pytest.mark.parametrize(
    ("shape", "ends"),
    [
        ("qwen3", "</think>\n\nThe city is"),
        ("llama3", "assistant<|end_header_id|>\n\nThe city is"),
        ("llama2", "Which city? [/INST] The city is"),
        ("channels", "<|channel|>final<|message|>The city is"),
    ],
)
def test_an_answer_with_a_lead_is_scored_and_written_behind_it(encoder_of, shape, ends):
    encoder = encoder_of(shape)
    question = {"prompt": "Which city?", "lead": "The city is"}
    written = encoder.prompt(GenerateRequest(max_new_tokens=3, **question))
    scored = encoder.pair(ScoreRequest(continuation=" Paris", **question))
    assert encoder.text(ScoreRequest(continuation=" Paris", **question)).endswith(ends)
    assert written == scored.prompt == scored.context
    assert encoder.tokenizer.decode(scored.targets).lstrip() == "Paris"


@pytest.mark.parametrize("lead", ["", "The city is"])
def test_nobody_can_switch_off_a_thought_that_the_template_opens(encoder_of, lead):
    request = ScoreRequest(prompt="Which city?", continuation=" Paris", lead=lead)
    with pytest.raises(ValueError, match="no form with a closed"):
        encoder_of("deepseek-r1", OFF).pair(request)


@pytest.mark.parametrize("shape", ["qwen3", "llama3", "gemma3", "deepseek-r1"])
def test_system_messages_and_earlier_turns_stand_before_the_question(encoder_of, shape):
    encoder = encoder_of(shape, ChatArgs(system_instruction="Be brief."))
    request = GenerateRequest(
        prompt="Which city?",
        max_new_tokens=3,
        system="Say unsure.",
        turns=(("Which river?", "the Nile"),),
    )
    text = encoder.text(request)
    places = [
        text.index(part)
        for part in (
            "Be brief.\n\nSay unsure.",
            "Which river?",
            "the Nile",
            "Which city?",
        )
    ]
    assert places == sorted(places)


def test_without_a_place_for_it_a_system_message_leads_the_first_question(encoder_of):
    encoder = encoder_of("llama2", ChatArgs(system_instruction="Be brief."))
    request = GenerateRequest(
        prompt="Which city?",
        max_new_tokens=3,
        system="Say unsure.",
        turns=(("A?", "b"),),
    )
    assert encoder.text(request).endswith(
        "[INST] Be brief.\n\nSay unsure.\n\nA? [/INST] b </s><s>[INST] Which city? [/INST]"
    )


RAW = (
    "the tokenizer has a chat template, and prompts are raw; --kb-apply-chat-template uses it "
    "(a judge's: apply_chat_template=True in --kb-judge-args)"
)


@pytest.mark.parametrize(
    ("shape", "wrapped", "chat", "notes"),
    [
        ("qwen3", True, OFF, ()),
        ("qwen3", True, NOTHING, ()),
        (
            "llama3",
            True,
            OFF,
            ("the chat template does not know enable_thinking: it has no effect",),
        ),
        (
            "qwen3",
            False,
            NOTHING,
            (RAW,),
        ),
        (
            "qwen3",
            False,
            OFF,
            (
                RAW,
                "enable_thinking of a chat template has no effect: prompts are raw",
            ),
        ),
    ],
)
def test_what_has_no_effect_is_said(tokenizer_of, shape, wrapped, chat, notes):
    encoder = PromptEncoder(
        tokenizer_of(shape), encoder_decoder=False, chat_template=wrapped, chat=chat
    )
    assert encoder.notes == notes


def test_one_of_several_templates_is_used_only_where_it_is_the_default(tokenizer_of):
    tokenizer = tokenizer_of("llama3")
    alone = ChatTemplate(tokenizer, NOTHING).prompt(ASKED)
    tokenizer.chat_template = {
        "default": tokenizer.chat_template,
        "tool_use": "{{ 1 }}",
    }
    assert ChatTemplate(tokenizer, NOTHING).prompt(ASKED) == alone
    tokenizer.chat_template = {
        "tool_use": "{{ 1 }}",
        "rag": tokenizer.chat_template["default"],
    }
    with pytest.raises(
        ModelError, match="templates named rag, tool_use, and none named default"
    ):
        ChatTemplate(tokenizer, NOTHING)


def test_a_template_that_leaves_the_question_out_is_refused(tokenizer_of):
    tokenizer = tokenizer_of("llama3")
    # Templates of models that see pictures take a list of parts; of a text they write nothing.
    tokenizer.chat_template = "{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}Answer:"
    with pytest.raises(ModelError, match="leaves out what a user says"):
        ChatTemplate(tokenizer, NOTHING)


TURNS = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}</s>{% endfor %}"
OPENED = TURNS + "{% if add_generation_prompt %}<|assistant|>{% endif %}"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (TURNS, r"no generation prompt: .* leaves out '<\|assistant\|>'"),
        (OPENED + "</s>", "ends a prompt with the end token </s>"),
        # The tokenizer's own end token is another one.
        ((OPENED + "</s>").replace("</s>", "<pad>"), "the end token <pad>"),
    ],
)
def test_a_prompt_ends_where_an_answer_begins(tokenizer_of, template, said):
    tokenizer = tokenizer_of("llama3")
    tokenizer.chat_template = template
    with pytest.raises(ModelError, match=said):
        ChatTemplate(tokenizer, NOTHING)
    if "end token" in said:
        # What an encoder reads has one.
        ChatTemplate(tokenizer, NOTHING, encoder_decoder=True)


@pytest.mark.parametrize(
    "template",
    [
        *SHAPES.values(),
        OPENED,
        # A thought is the model's to write.
        SHAPES["llama2"].replace('" " + m.content', '"<think>x</think>" + m.content'),
        # As DialoGPT's and Alpaca's: the answer follows at once.
        "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}",
        "{% for m in messages %}{{ m.content }}{{ '\nAnswer:' if loop.index % 2 else eos_token }}{% endfor %}",
    ],
)
def test_a_prompt_that_an_answer_follows_is_no_error(tokenizer_of, template):
    tokenizer = tokenizer_of("llama3")
    tokenizer.chat_template = template
    assert ChatTemplate(tokenizer, NOTHING).prompt(ASKED)


def test_that_a_model_thinks_is_not_said_to_have_no_effect(tokenizer_of):
    tokenizer = tokenizer_of("llama3")
    on = ChatArgs(enable_thinking=True)
    assert ChatTemplate(tokenizer, on).idle == ("enable_thinking",)
    tokenizer.add_tokens(["<think>", "</think>"])
    assert ChatTemplate(tokenizer, on).idle == ()
    assert ChatTemplate(tokenizer, OFF).idle == ("enable_thinking",)


def test_that_a_model_does_not_stop_behind_an_answer_is_said(encoder_of):
    encoder = encoder_of("llama3")
    encoder.tokenizer.add_special_tokens({"additional_special_tokens": ["<|eot_id|>"]})
    end = encoder.tokenizer.convert_tokens_to_ids("<|eot_id|>")
    own = tf.GenerationConfig(temperature=0.6, eos_token_id=end)
    for ends, said in (([end + 1], True), ([end, end + 1], False)):
        finding = check_endings(tf.GenerationConfig(eos_token_id=ends), own, encoder)
        assert ("ends an answer with <|eot_id|>" in finding.note) == said
        assert finding.state.endswith("generation_config.json not used: temperature")


@pytest.mark.parametrize("name", ["chat_template", "add_generation_prompt"])
def test_what_is_no_variable_of_a_template_is_refused(name):
    with pytest.raises(ModelError, match=f"{name} is no variable of a chat template"):
        parse_chat_args(
            {"chat_template_args": json.dumps({name: "x", "style": "brief"})}
        )


def test_the_end_of_a_thought_may_be_named_by_its_token(tokenizer_of):
    tokenizer = tokenizer_of("llama3")
    number = tokenizer.convert_tokens_to_ids("</s>")
    template = ChatTemplate(tokenizer, ChatArgs(think_end_token=str(number)))
    assert template.marks.closing == "</s>"
    with pytest.raises(
        ModelError, match="think_end_token=99999: the tokenizer has no such token"
    ):
        ChatTemplate(tokenizer, ChatArgs(think_end_token="99999"))


def test_a_template_that_refuses_not_to_think_cannot_be_scored(tokenizer_of):
    tokenizer = tokenizer_of("deepseek-r1")
    refuses = "{%- if enable_thinking is false %}{{ raise_exception('always thinks') }}{% endif -%}"
    tokenizer.chat_template = refuses + tokenizer.chat_template
    assert (
        "no form with a closed, empty thought"
        in ChatTemplate(tokenizer, ChatArgs()).unscorable
    )
