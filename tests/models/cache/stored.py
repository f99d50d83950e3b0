"""Fingerprints, responses and keys that tests of the store put into it."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from pytest_kbrel.models.cache.store import digest_of
from pytest_kbrel.records import Fingerprint, Generated, GenerateRequest
from tests.function_model import FunctionModel

MODEL = Fingerprint(
    spec="here",
    backend="hf",
    backend_version="torch 2",
    architecture="A",
    parameters=1,
    weights_digest="w",
    tokenizer_digest="t",
    dtype="float32",
    device="cpu",
    derived="int4",
    chat_template=True,
    adds_bos=True,
    scoring_version=3,
    quantisation="int4",
    decoding="greedy",
)


SERVED = replace(MODEL, weights_digest="")


ONE = FunctionModel().describe()
ANY = GenerateRequest(prompt="Where?", max_new_tokens=4)


def put(store, answers, model=ONE):
    """Put answers of a model into a store, by key."""
    store.put([(key, ANY, answer) for key, answer in answers], model, digest_of(model))


def get(store, keys, model=ONE):
    return store.get(list(keys), digest_of(model))


def text(content):
    return Generated(
        text=content, token_ids=(), finish="stop", prompt_tokens=1, prompt_digest="d"
    )


def hexed(word):
    return hashlib.sha256(word.encode()).hexdigest()
