"""Keys of responses: which changes of model or request make another."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace

import pytest

from pytest_kbrel.models.cache.store import digest_of, key_of
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.records import Fingerprint, GenerateRequest, ScoreRequest
from tests.models.cache.stored import MODEL, SERVED
from tests.models.tiny_checkpoints import (
    BOS,
    EOS,
    change_json,
    change_weights,
    make_checkpoint,
)

CHANGES = {
    **{
        "spec": "x",
        "backend": "x",
        "backend_version": "x",
        "architecture": "x",
        "parameters": 2,
    },
    **{
        "weights_digest": "x",
        "tokenizer_digest": "x",
        "dtype": "x",
        "device": "x",
        "derived": "x",
    },
    **{
        "chat_template": False,
        "adds_bos": False,
        "scoring_version": 5,
        "quantisation": "x",
    },
    **{"decoding": "x", "prompting": "x", "name": "x"},
}


ASK = GenerateRequest(
    prompt="a", max_new_tokens=1, stop=("x",), num_beams=2, steps=True, watch=(1,)
)


SCORE = ScoreRequest(prompt="a", continuation="b")


@pytest.mark.parametrize(
    ("model", "of_no_matter"),
    [
        (MODEL, {"spec", "name", "architecture", "parameters", "device"}),
        (SERVED, {"spec", "name", "backend_version", "parameters", "scoring_version"}),
    ],
    ids=["a checkpoint", "a served model"],
)
def test_each_part_of_a_models_identity_makes_another(model, of_no_matter):
    digests = {
        name: digest_of(replace(model, **{name: value}))
        for name, value in CHANGES.items()
    }
    assert {
        name for name, digest in digests.items() if digest == digest_of(model)
    } == of_no_matter
    others = [digest for name, digest in digests.items() if name not in of_no_matter]
    assert len(set(others)) == len(others)
    assert set(CHANGES) == set(Fingerprint.__dataclass_fields__)


def test_a_digest_is_the_same_in_every_version():
    # Else all that was kept would be asked anew.
    common = {
        **{
            "adds_bos": True,
            "backend": "hf",
            "chat_template": True,
            "decoding": "greedy",
            "derived": "int4",
        },
        **{"dtype": "float32", "quantisation": "int4", "tokenizer": "t"},
    }
    here = {**common, "computed_by": "torch 2", "scoring": 3, "weights": "w"}
    served = {**common, "name": "A", "server": "cpu", "weights": ""}
    for model, wanted in ((MODEL, here), (SERVED, served)):
        text = json.dumps(wanted, sort_keys=True)
        assert digest_of(model) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("request_", "changes"),
    [
        (
            ASK,
            {
                **{
                    "prompt": "b",
                    "max_new_tokens": 2,
                    "stop": (),
                    "num_beams": 1,
                    "steps": False,
                },
                **{"watch": (), "system": "s", "turns": (("q", "a"),), "top_k": 5},
                "lead": "l",
                "rounding": "int4",
            },
        ),
        (
            SCORE,
            {
                **{"prompt": "b", "continuation": "", "system": "s", "lead": "l"},
                "turns": (("q", "a"),),
                "rounding": "int4",
            },
        ),
    ],
)
def test_each_part_of_what_is_asked_makes_another_key(request_, changes):
    keys = [key_of("m", request_), key_of("n", request_)]
    keys += [
        key_of("m", replace(request_, **{name: value}))
        for name, value in changes.items()
    ]
    assert len(set(keys)) == len(keys)
    assert set(changes) == set(type(request_).__dataclass_fields__)


def test_each_rounding_has_a_key_of_its_own():
    rounded = [replace(ASK, rounding=of) for of in ("", "int4", "int8")]
    assert len({key_of("m", one) for one in rounded}) == 3


CHAT = "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    return {kind: make_checkpoint(folder / kind, kind) for kind in ("llama", "t5")}


@pytest.fixture
def copy(made, tmp_path):
    """Return a copy of a checkpoint under another path."""

    def copied(kind):
        return shutil.copytree(made[kind], tmp_path / kind)

    return copied


def who(folder, args=""):
    model = load(parse_spec(str(folder), args, device="cpu"))
    try:
        return digest_of(model.describe())
    finally:
        model.close()


@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_the_same_checkpoint_under_another_path_is_the_same(made, copy, kind):
    assert who(made[kind]) == who(copy(kind))


def test_decoders_that_begin_with_another_token_are_two(made, copy):
    other = copy("t5")
    change_json(other / "generation_config.json", decoder_start_token_id=BOS)
    asked = [GenerateRequest(prompt="Where is Paris?", max_new_tokens=6)]
    token_ids = []
    for folder in (made["t5"], other):
        model = load(parse_spec(str(folder), device="cpu"))
        token_ids.append(model.generate(asked)[0].token_ids)
        model.close()
    assert token_ids[0] != token_ids[1], "else nothing would be shown"
    assert who(made["t5"]) != who(other)


def _weights(folder):
    change_weights(folder, lambda tensors: tensors[sorted(tensors)[0]].mul_(1.01))


def _ends(folder):
    change_json(folder / "generation_config.json", eos_token_id=[EOS, 7])


def _config(folder):
    change_json(folder / "config.json", rms_norm_eps=1e-3)


def _merges(folder):
    import json

    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["model"]["merges"].reverse()
    file.write_text(json.dumps(tokenizer))


def _added_token(folder):
    import json

    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["added_tokens"][-1]["lstrip"] = True
    file.write_text(json.dumps(tokenizer))


@pytest.mark.parametrize(
    "change",
    [
        _weights,
        _ends,
        _config,
        _merges,
        _added_token,
        lambda folder: change_json(
            folder / "tokenizer_config.json", add_prefix_space=True
        ),
        lambda folder: change_json(
            folder / "tokenizer_config.json", split_special_tokens=True
        ),
    ],
    ids=[
        "weights",
        "ends",
        "config",
        "merges",
        "added token",
        "prefix space",
        "split special tokens",
    ],
)
def test_what_can_change_an_answer_makes_another(made, copy, change):
    other = copy("llama")
    change(other)
    assert who(made["llama"]) != who(other)


def test_ways_to_run_that_change_answers_are_told_apart(made, copy):
    here = copy("llama")
    change_json(here / "tokenizer_config.json", chat_template=CHAT)
    ways = [
        *("", "dtype=bfloat16", "add_bos_token=False", "attn_implementation=eager"),
        *("apply_chat_template=True", "apply_chat_template=True,add_bos_token=False"),
        *("apply_chat_template=True,add_bos_token=True",),
    ]
    digests = {way: who(here, way) for way in ways}
    change_json(here / "tokenizer_config.json", chat_template=CHAT + "!")
    digests["another template"] = who(here, "apply_chat_template=True")
    assert len(set(digests.values())) == len(digests)
    assert who(here, "max_length=64") == digests[""]
    assert who(here, "dtype=float32") == digests[""]
