"""Fingerprints, responses and keys that tests of the store put into it."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from pytest_kbrel.records import Fingerprint, Generated

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


def text(content):
    return Generated(
        text=content, token_ids=(), finish="stop", prompt_tokens=1, prompt_digest="d"
    )


def hexed(word):
    return hashlib.sha256(word.encode()).hexdigest()
