"""A sentence encoder of a few thousand random numbers, laid out as those on the hub are."""

from __future__ import annotations

import json
from pathlib import Path

VOCABULARY = "what who which is the a of in capital author wrote book land city country france peru unsure ?"
_LIBRARY = "sentence_transformers.models"


def make_encoder(folder: Path) -> Path:
    """Write a random BERT of 32 dimensions with mean pooling to ``folder``; returns it."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    (folder / "1_Pooling").mkdir(parents=True)
    letters = [
        f"{sharp}{chr(code)}"
        for code in range(ord("a"), ord("z") + 1)
        for sharp in ("", "##")
    ]
    words = dict.fromkeys(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *VOCABULARY.split(), *letters]
    )
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    vocabulary = {word: number for number, word in enumerate(words)}
    BertTokenizerFast(vocab=vocabulary, model_max_length=64).save_pretrained(folder)
    _write(
        folder / "modules.json",
        [
            {"idx": 0, "name": "0", "path": "", "type": f"{_LIBRARY}.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{_LIBRARY}.Pooling"},
        ],
    )
    _write(
        folder / "sentence_bert_config.json",
        {"max_seq_length": 64, "do_lower_case": False},
    )
    _write(
        folder / "1_Pooling" / "config.json",
        {
            "word_embedding_dimension": 32,
            "pooling_mode_mean_tokens": True,
            "pooling_mode_cls_token": False,
        },
    )
    return folder


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
