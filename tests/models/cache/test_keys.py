"""Keys of responses: which changes of model or request make another."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from pytest_kbrel.models.cache.store import digest_of, key_of
from pytest_kbrel.records import Fingerprint, GenerateRequest, ScoreRequest
from tests.models.cache.stored import MODEL, SERVED

CHANGES = {
    **{"spec": "x", "backend": "x", "backend_version": "x", "architecture": "x", "parameters": 2},
    **{"weights_digest": "x", "tokenizer_digest": "x", "dtype": "x", "device": "x", "derived": "x"},
    **{"chat_template": False, "adds_bos": False, "scoring_version": 4, "quantisation": "x"},
    **{"decoding": "x", "prompting": "x"},
}


ASK = GenerateRequest(prompt="a", max_new_tokens=1, stop=("x",), num_beams=2, steps=True, watch=(1,))


SCORE = ScoreRequest(prompt="a", continuation="b")


@pytest.mark.parametrize(
    ("model", "of_no_matter"),
    [
        (MODEL, {"spec", "architecture", "parameters", "device"}),
        (SERVED, {"spec", "backend_version", "parameters", "scoring_version"}),
    ],
    ids=["a checkpoint", "a served model"],
)
def test_each_part_of_a_models_identity_makes_another(model, of_no_matter):
    digests = {name: digest_of(replace(model, **{name: value})) for name, value in CHANGES.items()}
    assert {name for name, digest in digests.items() if digest == digest_of(model)} == of_no_matter
    others = [digest for name, digest in digests.items() if name not in of_no_matter]
    assert len(set(others)) == len(others)
    assert set(CHANGES) == set(Fingerprint.__dataclass_fields__)


def test_a_digest_is_the_same_in_every_version():
    # Else all that was kept would be asked anew.
    said = {
        **{"adds_bos": True, "backend": "hf", "chat_template": True, "decoding": "greedy", "derived": "int4"},
        **{"dtype": "float32", "quantisation": "int4", "tokenizer": "t"},
    }
    here = {**said, "computed_by": "torch 2", "scoring": 3, "weights": "w"}
    served = {**said, "name": "A", "server": "cpu", "weights": ""}
    for model, wanted in ((MODEL, here), (SERVED, served)):
        text = json.dumps(wanted, sort_keys=True)
        assert digest_of(model) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("request_", "changes"),
    [
        (
            ASK,
            {
                **{"prompt": "b", "max_new_tokens": 2, "stop": (), "num_beams": 1, "steps": False},
                **{"watch": (), "system": "s", "turns": (("q", "a"),)},
            },
        ),
        (SCORE, {"prompt": "b", "continuation": "", "system": "s", "turns": (("q", "a"),)}),
    ],
)
def test_each_part_of_what_is_asked_makes_another_key(request_, changes):
    keys = [key_of("m", request_), key_of("n", request_)]
    keys += [key_of("m", replace(request_, **{name: value})) for name, value in changes.items()]
    assert len(set(keys)) == len(keys)
    assert set(changes) == set(type(request_).__dataclass_fields__)
