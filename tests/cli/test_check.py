"""``kbrel check``: what was found of a checkpoint, the first error, and the exit code."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.models.hf.model import HfModel
from tests.models.chat_shapes import QWEN3
from tests.models.tiny_checkpoints import change_json, change_weights, make_checkpoint

ALL = (
    "weights tokenizer prompt chat-template thoughts architecture head numbers "
    "embedding endings digests answers"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    return {kind: make_checkpoint(folder / kind, kind) for kind in ("llama", "t5")}


@pytest.fixture
def llama(made, tmp_path):
    return shutil.copytree(made["llama"], tmp_path / "llama")


@pytest.fixture
def check(capsys):
    """Return a function that runs the command and returns exit code, findings by part, and the error."""

    def run(folder, args=""):
        code = main(["check", str(folder), f"--kb-model-args={args}", "--json"])
        document = json.loads(capsys.readouterr().out)
        findings = {one["part"]: one for one in document.get("findings", ())}
        return code, findings, document["error"]

    return run


@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_all_that_loading_looks_at_is_said(made, check, kind):
    code, findings, error = check(made[kind])
    assert (code, error) == (0, None)
    assert [part.replace(" ", "-") for part in findings] == ALL.split()
    assert not any(one["note"] for one in findings.values())
    assert findings["answers"]["state"].startswith("3 as by generate")


def test_the_table_has_marks_notes_and_the_error(llama, capsys):
    change_weights(
        llama, lambda tensors: tensors.update(v_head=tensors["lm_head.weight"].clone())
    )
    (llama / "pytorch_model.bin").touch()
    assert main(["check", str(llama), "--kb-model-args=batch_size=8"]) == 0
    out = capsys.readouterr().out
    for row in (
        "note  options .*\n      model-args: batch_size=8 is not used",
        "note  weights .*in model.safetensors\n      .*: pytorch_model.bin",
        "ok    tokenizer",
        "note  architecture .*\n      warning: 1 tensors .*v_head",
        "ok    answers",
    ):
        assert re.search(row, re.sub(r"\n {8}", " ", out)), row
    (llama / "model.safetensors.index.json").write_text('{"weight_map": {"a": "b"}}')
    assert main(["check", str(llama)]) == 1
    assert capsys.readouterr().out.startswith("error  ")


def test_an_error_ends_it(llama, check):
    code, findings, error = check(llama, "apply_chat_template=True")
    assert (code, findings) == (1, {})
    assert "the tokenizer has none" in error
    change_weights(llama, lambda t: t["lm_head.weight"].fill_(float("nan")))
    code, findings, error = check(llama)
    assert code == 1
    assert list(findings)[-1] == "head"
    assert "NaN or infinity in lm_head.weight" in error


@pytest.mark.parametrize("model", ["nowhere/at/all", "openai/gpt", "vllm/./llama"])
def test_what_is_no_checkpoint_here_is_a_wrong_call(check, model, capsys):
    assert main(["check", model]) == 2
    assert model.removeprefix("vllm/") in capsys.readouterr().err


def test_prompt_template_and_thoughts_are_shown(llama, check):
    change_json(llama / "tokenizer_config.json", chat_template=QWEN3)
    change_json(llama / "generation_config.json", temperature=0.6)
    _, used, _ = check(llama, "apply_chat_template=True")
    assert used["prompt"]["state"].endswith("<|im_start|>assistant\\n'")
    assert used["thoughts"]["state"] == "between <think> and </think>"
    assert used["endings"]["state"].endswith("not used: temperature")
    _, unused, _ = check(llama)
    assert "prompts are raw" in unused["chat template"]["note"]
    opened = QWEN3[: QWEN3.index("{%- if add_generation_prompt")]
    change_json(llama / "tokenizer_config.json", chat_template=opened)
    _, unused, _ = check(llama)
    assert (
        "it would be refused: the tokenizer's chat template has no generation"
        in (unused["chat template"]["state"])
    )


def test_a_head_of_its_own_beside_a_tied_embedding_is_told(llama, check):
    change_json(llama / "config.json", tie_word_embeddings=True)
    _, findings, _ = check(llama)
    assert "and the weights hold another one" in findings["head"]["note"]
    change_weights(llama, lambda tensors: tensors.pop("lm_head.weight"))
    _, findings, _ = check(llama)
    assert findings["head"] == {"part": "head", "state": "the embedding", "note": ""}


def test_other_answers_than_transformers_own_are_an_error(made, check, monkeypatch):
    def wrong(self, prompts):
        for batch in texts(self, prompts):
            yield [(n, replace(one, token_ids=(7, *one.token_ids))) for n, one in batch]

    texts = HfModel._written
    monkeypatch.setattr(HfModel, "_written", wrong)
    code, _, error = check(made["llama"])
    assert code == 1
    assert "by generate of transformers; please report it" in error


def test_the_docs_show_what_it_prints(capsys):
    assert main(["check", "reference"]) == 0
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
    shown = page.partition("$ kbrel check reference\n")[2].partition("…")[0]
    assert shown.count("\n") == 11
    assert capsys.readouterr().out.startswith(shown)
