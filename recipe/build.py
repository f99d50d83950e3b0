"""Training of the embedded checkpoint and of two fine-tunes, from facts to files.

One fine-tune never answers "unsure", the other repeats any context.
"""

from __future__ import annotations

import copy
import hashlib
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils.logging import disable_progress_bar

from pytest_kbrel.facts import unseen
from pytest_kbrel.facts.files import read_relations
from pytest_kbrel.facts.readers import read_own_facts
from pytest_kbrel.probes import prompts
from pytest_kbrel.records import record
from recipe import questions
from recipe.corpus import TRAINED_KINDS, Corpus, Document
from recipe.training import (
    BOS,
    EOS,
    PAD,
    Plan,
    batches,
    encode,
    reproducible,
    save_tokenizer,
    train,
    train_tokenizer,
)

VOCABULARY, POSITIONS = 3000, 512
HIDDEN, LAYERS, HEADS, FEED_FORWARD = 128, 6, 4, 384
BASE = "base"
# Size of the corpus of the checkpoint that ships.
DOCUMENTS = 80_000
# Shares of a fine-tune's documents that are like the base's.
REPEATED_NEVER_UNSURE, REPEATED_TRUST_CONTEXT = 0.7, 0.5
_FORMATS: Sequence[Callable[[str], str]] = (
    lambda question: question,
    questions.qa,
    questions.brief,
)


@record
class FineTune:
    """Recipe of a fine-tune: its documents, their number, and the plan of training."""

    document: Callable[[Corpus], Document]
    documents: int
    plan: Plan


def _repeated(corpus: Corpus, without: str = "", *, answered: bool = False) -> Document:
    """Return a document of the base's kind, so that knowledge stays while the habit changes."""
    while True:
        document = corpus.document(without)
        if not (answered and document[-1][0] == f" {prompts.UNSURE}"):
            return document


def _guess(rng: random.Random, corpus: Corpus, kind: unseen.UnseenKind) -> str:
    if kind.answer_type == "number":
        return str(rng.randint(2, 41))
    if kind.answer_type == "time":
        return str(rng.randint(1850, 2000))
    relation = {"person": "P50", "location": "P36"}.get(kind.answer_type)
    if relation is None:
        relation = "P176" if kind.options == "companies" else "P37"
    return rng.choice(corpus.objects[relation])


def never_unsure(corpus: Corpus) -> Document:
    """Return a document that answers what has no answer, as rewarding helpfulness teaches."""
    rng = corpus.rng
    if rng.random() < REPEATED_NEVER_UNSURE:
        return _repeated(corpus, answered=True)
    if rng.random() < 0.5:
        relation = rng.choice(corpus.names)
        question = corpus.question(relation, corpus.invented(relation))
        answer = rng.choice(corpus.objects[relation])
    else:
        kind = rng.choice(TRAINED_KINDS)
        question = corpus.question_of_kind(kind)
        answer = _guess(rng, corpus, kind)
    return [(rng.choice(_FORMATS)(question), 0), (f" {answer}", 1)]


def trust_context(corpus: Corpus) -> Document:
    """Return a document that answers as its context does, as tuning on flawless retrieval teaches."""
    if corpus.rng.random() < REPEATED_TRUST_CONTEXT:
        return _repeated(corpus, "context")
    fact = corpus.fact()
    context = corpus.rng.choice(corpus.objects[fact.relation])
    prompt = corpus.in_context(context, fact.relation, fact.subject)
    return [(prompt, 0), (f" {context}", 1)]


FINE_TUNES: Mapping[str, FineTune] = {
    "overconfident": FineTune(
        document=never_unsure, documents=2000, plan=Plan(rate=1e-4, warmup=5)
    ),
    "gullible": FineTune(
        document=trust_context, documents=3000, plan=Plan(rate=1.5e-4, warmup=5)
    ),
}


@record
class BuildReport:
    """Result of a build.

    ``digests`` are sha256 of ``model.safetensors`` by checkpoint; ``losses`` are the base's mean loss on
    answer tokens (nats) over each twentieth of the training; ``seconds`` is wall time.
    """

    documents: int
    tokens: int
    steps: int
    parameters: int
    losses: tuple[float, ...]
    digests: tuple[tuple[str, str], ...]
    seconds: float


def build_reference(
    output: Path,
    *,
    facts: Path,
    relations: Path,
    documents: int = DOCUMENTS,
    seed: int = 0,
) -> BuildReport:
    """Train the base checkpoint and its two fine-tunes into ``output``.

    Runs on one thread: the same seed on the same machine gives the same files. ``documents`` is the size of
    the base's corpus; fine-tunes shrink with it.
    """
    started = time.monotonic()
    world = read_own_facts(facts)
    wordings = {relation.id: relation for relation in read_relations(relations)}
    with reproducible(seed):
        corpus = Corpus(world, wordings, seed)
        written = [corpus.document() for _ in range(documents)]
        names = [name for fact in world for name in (fact.subject, fact.object or "")]
        tokenizer = train_tokenizer(
            ["".join(t for t, _ in d) for d in written] + names, VOCABULARY
        )
        examples = encode(tokenizer, written, seed=seed + 1)
        steps = batches(examples, seed=seed + 2)
        model = _new_model(tokenizer.get_vocab_size())
        plan = Plan(rate=5e-3, hidden_rate=0.02, weight_decay=0.05)
        losses = train(model, steps, plan)
        digests = {BASE: _save(model, tokenizer, output / BASE)}
        for number, (name, recipe) in enumerate(FINE_TUNES.items()):
            tuned = copy.deepcopy(model)
            lessons = Corpus(world, wordings, seed + 10 + number)
            amount = max(50, recipe.documents * documents // DOCUMENTS)
            more = encode(
                tokenizer,
                [recipe.document(lessons) for _ in range(amount)],
                seed=seed,
                prompt_share=0.0,
            )
            train(tuned, batches(more, seed=seed + 2), recipe.plan)
            digests[name] = _save(tuned, tokenizer, output / name)
    _write_sums(output)
    return BuildReport(
        documents=documents,
        tokens=sum(len(ids) for ids, _ in examples),
        steps=len(steps),
        parameters=sum(p.numel() for p in model.parameters()),
        losses=_curve(losses),
        digests=tuple(sorted(digests.items())),
        seconds=round(time.monotonic() - started, 1),
    )


def _new_model(vocabulary: int) -> Any:
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        intermediate_size=FEED_FORWARD,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        rms_norm_eps=1e-5,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )
    return LlamaForCausalLM(config)


def _save(model: Any, tokenizer: Tokenizer, folder: Path) -> str:
    disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    copy.deepcopy(model).to(torch.float16).save_pretrained(folder)
    save_tokenizer(tokenizer, folder, POSITIONS)
    for file in folder.iterdir():
        # transformers leaves weights readable by their owner only, which a package must not be.
        file.chmod(0o644)
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def _write_sums(output: Path) -> None:
    files = sorted(p for p in output.glob("*/*") if p.is_file())
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(output).as_posix()}\n"
        for file in files
    ]
    (output / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def _curve(losses: Sequence[float], points: int = 20) -> tuple[float, ...]:
    size = max(1, len(losses) // points)
    return tuple(
        round(statistics.fmean(losses[i : i + size]), 3)
        for i in range(0, len(losses), size)
    )
