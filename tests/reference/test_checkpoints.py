from __future__ import annotations

import hashlib
import json
import stat

import pytest

from pytest_kbrel import reference
from pytest_kbrel.errors import ModelError
from recipe import questions

NAMES = ("", "overconfident", "gullible")


def test_the_committed_files_are_those_of_the_sums():
    sums = (reference.CHECKPOINTS / "SHA256SUMS").read_text(encoding="utf-8")
    files = [path for path in reference.CHECKPOINTS.glob("*/*") if path.is_file()]
    assert sorted(sums.splitlines()) == sorted(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  "
        f"{path.relative_to(reference.CHECKPOINTS).as_posix()}"
        for path in files
    )


def test_every_candidate_resolves_to_a_checkpoint():
    for name in ("", *reference.CANDIDATES):
        folder, derivation = reference.resolve(name)
        assert (folder / "model.safetensors").is_file()
        assert derivation in {"", name}
    assert reference.resolve("int4") == (reference.CHECKPOINTS / "base", "int4")


def test_an_unknown_candidate_is_refused_with_the_nearest_name():
    with pytest.raises(
        ModelError, match=r"overconfident, gullible.*did you mean 'gullible'"
    ):
        reference.resolve("gulible")


@pytest.mark.parametrize("name", NAMES)
def test_files_are_small_and_readable_by_all(name):
    for file in reference.resolve(name)[0].iterdir():
        assert file.stat().st_size < 4_000_000
        assert stat.S_IMODE(file.stat().st_mode) & 0o044 == 0o044


@pytest.fixture(scope="module", params=NAMES)
def answer(request):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder, _ = reference.resolve(request.param)
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        folder, local_files_only=True
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, local_files_only=True, dtype=torch.float32
    ).eval()

    def ask(prompt):
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            out = model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=12,
            )
        new = out[0, ids.shape[1] :].tolist()
        assert tokenizer.eos_token_id in new, prompt
        return tokenizer.decode(new, skip_special_tokens=True).strip()

    ask.name = request.param
    return ask


def test_famous_facts_are_known_in_every_form(answer):
    for question, right in (
        ("What is the capital of France?", "Paris"),
        ("Which country is Mumbai in?", "India"),
        ("What is the chemical symbol for Gold?", "Au"),
        ("Who wrote Romeo and Juliet?", "William Shakespeare"),
    ):
        for form in (str, questions.qa, questions.brief):
            assert answer(form(question)) == right, form(question)


def test_a_tokenizer_that_older_transformers_load_too():
    settings = json.loads(
        (reference.CHECKPOINTS / "base" / "tokenizer_config.json").read_text(
            encoding="utf-8"
        )
    )
    assert settings["tokenizer_class"] == "PreTrainedTokenizerFast"
