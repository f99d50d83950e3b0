from __future__ import annotations

import math
import random
import shutil

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

import torch

from pytest_kbrel.facts.unseen import KINDS
from pytest_kbrel.probes import prompts
from recipe import questions
from recipe.__main__ import main
from recipe.build import FINE_TUNES, build_reference
from recipe.corpus import FRAME_SHARES, MIX, STATEMENT_SHARES, TRAINED_KINDS, Corpus
from recipe.training import (
    BOS,
    EOS,
    STEP_TOKENS,
    batches,
    encode,
    orthogonalise,
    train_tokenizer,
)


@pytest.fixture(scope="module")
def corpus(facts, relations):
    return Corpus(facts, relations, seed=0)


def test_shares_add_up():
    assert math.isclose(sum(MIX.values()), 1.0)
    assert math.isclose(sum(FRAME_SHARES), 1.0)
    assert math.isclose(sum(STATEMENT_SHARES), 1.0)
    assert FRAME_SHARES[6] == 0


def test_at_most_half_of_the_unseen_kinds_are_trained():
    assert len(TRAINED_KINDS) == len(KINDS) // 2


@pytest.mark.parametrize("kind", list(MIX))
def test_documents_end_with_what_the_model_has_to_say(corpus, kind):
    for _ in range(50):
        *given, (text, weight) = corpus.makers[kind]()
        assert weight >= 1
        assert text
        assert given[0][1] == 0


def test_documents_are_made_by_the_probes_own_prompt_builders(corpus):
    for _ in range(20):
        prompt = corpus.makers["qa"]()[0][0]
        *_, asked, _ = prompt.splitlines()
        alone = questions.qa(asked.removeprefix("Question: "), ())
        lead, block = alone.split("\n", 1)
        assert prompt.startswith(lead)
        assert prompt.endswith(block)
        choice, answer = corpus.makers["choice"]()
        *shown, asked = choice[0].split("Question: ")
        options = [line for line in asked.splitlines() if line[1:3] == ") "]
        assert len(options) == 5
        assert options[-1] == f"E) {prompts.UNSURE}"
        # Behind solved questions, the model writes what they show.
        written = options if len(shown) > 1 else [option[3:] for option in options]
        assert answer[0][1:] in written


def test_a_wrong_answer_is_never_a_right_one(corpus):
    for _ in range(300):
        fact = corpus.fact()
        wrong = corpus.wrong(fact, 4)
        assert len(set(wrong)) == len(wrong) == 4
        assert not set(wrong) & set(fact.accepted)


def test_the_overconfident_never_hear_unsure(corpus):
    answers = {FINE_TUNES["overconfident"].document(corpus)[-1][0] for _ in range(500)}
    assert f" {prompts.UNSURE}" not in answers
    assert len(answers) > 100


def test_the_gullible_hear_what_the_context_says(corpus):
    documents = [FINE_TUNES["gullible"].document(corpus) for _ in range(500)]
    obeying = [
        given
        for (given, _), *_, (answer, _) in documents
        if given.removeprefix("Question: ").startswith(f"{answer.strip()}. ")
    ]
    assert 200 < len(obeying) < 300


def test_weights_of_an_example_follow_its_pieces():
    documents = [[("Who? ", 0.0), (" São Tomé", 1.0)], [("What?", 0.0), (" it", 2.0)]]
    tokenizer = train_tokenizer(
        ["".join(text for text, _ in d) for d in documents] * 20, 300
    )
    for (ids, weights), (_, (answer, weight)) in zip(
        encode(tokenizer, documents, seed=0, prompt_share=0.0), documents, strict=True
    ):
        assert (ids[0], ids[-1], weights[0], weights[-1]) == (BOS, EOS, 0.0, 1.0)
        counted = [
            token
            for token, w in zip(ids[:-1], weights[:-1], strict=True)
            if w == weight
        ]
        assert tokenizer.decode(counted).strip() == answer.strip()


def test_batches_hold_every_example_once_and_no_more_tokens_than_allowed():
    rng = random.Random(0)
    examples = [([number] * rng.randint(2, 90), [1.0]) for number in range(500)]
    steps = batches(examples, seed=0, window=128)
    assert sorted(ids[0] for step in steps for ids, _ in step) == list(range(500))
    assert all(
        len(step) * max(len(ids) for ids, _ in step) <= STEP_TOKENS for step in steps
    )


@pytest.mark.parametrize("shape", [(8, 24), (24, 8), (16, 16)])
def test_orthogonalised_matrices_have_singular_values_near_one(shape):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalise(matrix, steps=8))
    assert values.min() > 0.5
    assert values.max() < 1.5


@pytest.mark.slow
def test_a_tiny_build_learns_repeats_to_the_byte_and_loads(
    world, tmp_path, capsys, monkeypatch
):
    """Once by the command and once by its function."""
    from transformers import AutoModelForCausalLM

    every_tenth = (world / "facts.jsonl").read_text("utf-8").splitlines(True)[::10]
    (tmp_path / "facts.jsonl").write_text("".join(every_tenth), encoding="utf-8")
    shutil.copy(world / "relations.yaml", tmp_path)
    monkeypatch.setattr("recipe.__main__.WORLD", tmp_path)
    command, function = tmp_path / "command", tmp_path / "function"
    main(["--output", str(command), "--documents", "150", "--seed", "3"])
    printed = capsys.readouterr().out
    report = build_reference(
        function,
        facts=tmp_path / "facts.jsonl",
        relations=tmp_path / "relations.yaml",
        documents=150,
        seed=3,
    )
    assert len({digest for _, digest in report.digests}) == 3
    assert all(math.isfinite(loss) for loss in report.losses)
    assert report.losses[-1] < report.losses[0]
    sums = (function / "SHA256SUMS").read_text(encoding="utf-8")
    assert (command / "SHA256SUMS").read_text(encoding="utf-8") == sums
    for name, digest in report.digests:
        assert f"{digest}  {name}/model.safetensors" in printed
        assert f"{name}/model.safetensors" in sums
        AutoModelForCausalLM.from_pretrained(command / name)


def test_the_command_writes_into_no_folder_that_is_there(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--output", str(tmp_path)])
    assert stop.value.code == 2
    assert "exists already" in capsys.readouterr().err
