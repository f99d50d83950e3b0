from __future__ import annotations

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.arguments import (
    CHAT_ARGS,
    join_args,
    parse_args,
    parse_chat_args,
)
from pytest_kbrel.models.checkpoint.spec import (
    ModelSpec,
    parse_spec,
)
from pytest_kbrel.models.openai.spec import parse_openai

KEYS = ("dtype", "revision", *CHAT_ARGS)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("dtype=float32,revision=main", {"dtype": "float32", "revision": "main"}),
        ("dtype=float32, revision=main", {"dtype": "float32", "revision": "main"}),
        (
            'chat_template_args={"a": [1, 2], "b": "},"},dtype=auto',
            {"chat_template_args": '{"a": [1, 2], "b": "},"}', "dtype": "auto"},
        ),
        (
            'system_instruction="You are terse, and never guess.",dtype=auto',
            {"system_instruction": "You are terse, and never guess.", "dtype": "auto"},
        ),
        (
            'system_instruction="[INST] Be brief, please."',
            {"system_instruction": "[INST] Be brief, please."},
        ),
    ],
)
def test_arguments_are_read_and_can_be_written_again(
    text: str, result: dict[str, str]
) -> None:
    assert parse_args(text, KEYS) == result
    assert parse_args(join_args(result), KEYS) == result


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("colour=red", "unknown key 'colour'"),
        ("dtype", "dtype has no value"),
        ("dtype=a,dtype=b", "dtype is given twice"),
        ('system_instruction="Be brief', 'the quotation mark " is not closed'),
        ('chat_template_args={"a": 1', "chat_template_args: no JSON: Expecting"),
    ],
)
def test_arguments_of_another_form_are_refused(text: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        parse_args(text, KEYS)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"chat_template_args": "thinking"}, "no JSON"),
        ({"chat_template_args": "[1]"}, "allowed is a JSON object"),
        (
            {"chat_template_args": '{"enable_thinking": "no"}'},
            "allowed is true or false",
        ),
        (
            {
                "chat_template_args": '{"enable_thinking": true}',
                "enable_thinking": "False",
            },
            "give one of them",
        ),
        ({"enable_thinking": "maybe"}, "allowed is True or False"),
        (
            {"max_thinking_tokens": "0"},
            "from 1 to 100,000,000, of tokens; enable_thinking=False",
        ),
        (
            {"system_instruction": " "},
            "model-args: system_instruction is blank; allowed is a text",
        ),
    ],
)
def test_bad_arguments_of_a_chat_template_are_refused(
    args: dict[str, str], says: str
) -> None:
    with pytest.raises(ModelError, match=says):
        parse_chat_args(args)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            "batch_size=8",
            "batch_size=8 is not used: it counts sequences, .* --kb-batch-size TOKENS",
        ),
        (
            "offload_folder=./offload",
            "offload_folder=./offload is not used: .* goes to one device",
        ),
        ("use_fast_tokenizer=False", "that transformers makes by itself"),
    ],
)
def test_what_has_no_effect_is_said_in_one_line(args, said):
    import re

    (note,) = parse_spec("./here", args).notes
    assert re.search(said, note)
    assert "\n" not in note


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            "mixed_precision_dtype=bfloat16",
            "is refused: .* dtype=bfloat16 runs the whole model",
        ),
        ("tp_plan=auto", "allowed: parallelize=True, or vllm/"),
        ("compile=True", "compile=True is refused: .*slower.*; allowed: False"),
        ("attn_implementation=spda", "allowed: eager, sdpa, flash_att.*'sdpa'"),
        ("backend=masked", "allowed: default, causal, seq2seq"),
        ("prefix_token_id=<s>", "prefix_token_id '<s>'; allowed is a whole number"),
        ("bnb_4bit_quant_type=nf4", "bnb_4bit_quant_type is for load_in_4bit=True"),
        ("load_in_4bit=True,bnb_4bit_quant_type=int4", "allowed: fp4, nf4"),
        ("load_in_4bit=True,bnb_4bit_compute_dtype=f8", "dtype 'f8' is unknown"),
        ("load_in_4bit=True,bnb_4bit_use_double_quant=2", "True or False"),
    ],
)
def test_what_would_change_the_figures_is_refused(args, said):
    with pytest.raises(ModelError, match=said):
        parse_spec("./here", args)


def test_what_is_done_is_done_as_lm_eval_says():
    args = (
        "backend=causal,subfolder=last,prefix_token_id=2,load_in_4bit=True,"
        "bnb_4bit_quant_type=nf4,bnb_4bit_compute_dtype=torch.bfloat16,bnb_4bit_use_double_quant=true"
    )
    assert parse_spec("./here", args) == ModelSpec(
        text="./here",
        path="./here",
        kind="causal",
        subfolder="last",
        prefix_token_id=2,
        load_in_4bit=True,
        bnb_4bit=(
            ("compute_dtype", "bfloat16"),
            ("quant_type", "nf4"),
            ("use_double_quant", True),
        ),
    )


def test_a_string_for_lm_evals_servers():
    args = (
        "model=gpt-x,base_url=http://h/v1/completions,num_concurrent=4,max_retries=3,tokenized_requests=False,"
        "tokenizer_backend=None,tokenizer=org/name,max_length=4096,batch_size=1,truncate=False,timeout=300"
    )
    spec = parse_openai("openai", args)
    assert (spec.text, spec.name, spec.endpoint) == (
        "openai/gpt-x",
        "gpt-x",
        "completions",
    )
    assert spec.tokenizer == "org/name"
    assert [note.split("=")[0] for note in spec.notes] == ["model-args: max_length"]
    assert parse_openai("openai/gpt-x", "pretrained=gpt-x").name == "gpt-x"
    with pytest.raises(ModelError, match="two models are named: gpt-x and gpt-y"):
        parse_openai("openai/gpt-x", "model=gpt-y")


@pytest.mark.parametrize(
    "args",
    [
        "add_bos_token=True",
        "ca_cert_path=a.pem",
    ],
)
def test_what_a_server_cannot_be_told_is_refused(args):
    with pytest.raises(ModelError, match="is refused"):
        parse_openai("openai/x", args)
