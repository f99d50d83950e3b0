"""Adapters: what fits is applied, what does not fit as a whole is refused, another base model is told."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.spec import (
    ModelSpec,
    parse_spec,
)
from pytest_kbrel.models.hf import loading as module
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.hf.loading import base_note
from pytest_kbrel.models.hf.rounding import rounded
from pytest_kbrel.records import ScoreRequest
from tests.models import tiny_checkpoints
from tests.models.tiny_checkpoints import change_json

SPEC = ModelSpec(text="./base", path="./base", peft="./adapter")
ASKED = [ScoreRequest(prompt="Paris is", continuation=" the capital")]


@pytest.mark.parametrize(
    ("base", "is_another"),
    [
        (None, False),
        ("", False),
        ("org/base", False),
        ("/data/models/Base/", False),
        ("org/base-chat", True),
        ("/data/other", True),
    ],
)
def test_another_base_model_than_the_adapter_names_is_told(base, is_another):
    said = base_note(SPEC, SimpleNamespace(base_model_name_or_path=base))
    assert bool(said) == is_another
    if is_another:
        assert said.startswith(
            f"warning: the adapter ./adapter names another base model, {base},"
        )


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny_checkpoints.make_checkpoint(tmp_path_factory.mktemp("base"), "llama")


@pytest.fixture
def adapter(base, tmp_path):
    """Return a function that makes an adapter of the base, changed as its arguments say."""
    peft = pytest.importorskip("peft")

    def make(change=None, config=None, **options):
        model = transformers.AutoModelForCausalLM.from_pretrained(base)
        settings = {
            "r": 2,
            "target_modules": ["q_proj", "v_proj"],
            "task_type": "CAUSAL_LM",
        } | options
        made = peft.get_peft_model(model, peft.LoraConfig(**settings))
        with torch.random.fork_rng():
            torch.manual_seed(0)
            for name, weights in made.named_parameters():
                if "lora" in name:
                    torch.nn.init.normal_(weights, std=0.5)
        folder = tmp_path / "adapter"
        shutil.rmtree(folder, ignore_errors=True)
        made.save_pretrained(folder)
        if change is not None:
            weights = load_file(folder / "adapter_model.safetensors")
            change(weights)
            save_file(weights, folder / "adapter_model.safetensors")
        change_json(folder / "adapter_config.json", **(config or {}))
        return folder

    return make


def opened(base, folder, more=""):
    return load(parse_spec(str(base), f"peft={folder}{more}", device="cpu"), threads=1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("more", [{}, {"modules_to_save": ["lm_head"]}])
def test_an_adapter_that_fits_changes_the_answers(base, adapter, more):
    plain = load(parse_spec(str(base), device="cpu"), threads=1)
    adapted = opened(base, adapter(**more))
    assert adapted.notes == ()
    assert adapted.score(ASKED)[0].probabilities != plain.score(ASKED)[0].probabilities
    assert adapted.describe().weights_digest != plain.describe().weights_digest


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("more", [{}, {"modules_to_save": ["lm_head"]}])
def test_an_adapter_is_merged_before_its_sum_is_rounded(base, adapter, more):
    parts = opened(base, adapter(**more)).parts
    before = {name: of.clone() for name, of in parts.model.state_dict().items()}
    layer = parts.model.get_submodule(
        "base_model.model.model.layers.0.self_attn.q_proj"
    )
    whole = layer.base_layer.weight + layer.get_delta_weight("default")
    with rounded(parts, 8):
        steps = 127 / whole.abs().amax(dim=-1, keepdim=True)
        wanted = (whole * steps).round() / steps
        assert torch.allclose(layer.base_layer.weight, wanted, atol=1e-6)
    after = parts.model.state_dict()
    assert all(torch.equal(of, after[name]) for name, of in before.items())
    assert not layer.merged


@pytest.mark.filterwarnings("ignore")
def test_an_adapter_beside_the_checkpoint_is_refused(base, adapter, tmp_path):
    both = shutil.copytree(base, tmp_path / "both")
    shutil.copytree(adapter(), both, dirs_exist_ok=True)
    with pytest.raises(
        ModelError,
        match=r"both: an adapter .* lies beside the checkpoint .* peft=FOLDER",
    ):
        load(parse_spec(str(both), device="cpu"), threads=1)


def renamed(weights):
    for key in list(weights):
        weights[key.replace("model.model.layers", "model.other.layers")] = weights.pop(
            key
        )


def beyond(weights):
    weights["base_model.model.model.layers.5.self_attn.q_proj.lora_A.weight"] = (
        torch.zeros(2, 32)
    )


def wider(weights):
    weights[min(weights)] = torch.zeros(2, 48)


def never_trained(weights):
    for name, weight in weights.items():
        if "lora_B" in name:
            weight.zero_()


def without_the_head(weights):
    del weights["base_model.model.lm_head.weight"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"change": renamed}, r"no place for: .*other\.layers\.0\..* and 7 more;"),
        (
            {"change": lambda weights: weights.pop(min(weights))},
            r"no weights for some .*layers\.0\..*lora_A",
        ),
        (
            {"change": beyond},
            r"no place for: .*layers\.5\.self_attn\.q_proj\.lora_A\.weight;",
        ),
        (
            {"change": wider},
            r"does not fit: .*size mismatch for .*layers\.0\..*lora_A",
        ),
        ({"config": {"lora_alpha": 0}}, r"changes nothing: all logits of 2 prompts"),
        (
            {"alora_invocation_tokens": [7, 8]},
            "an activated LoRA, which works behind its invocation tokens only",
        ),
        ({"change": never_trained}, r"changes nothing: all logits of 2 prompts"),
        (
            {"change": without_the_head, "modules_to_save": ["lm_head"]},
            r"does not fit: .*lm_head\.weight.*;",
        ),
        (
            {"config": {"target_modules": ["q_proj", "k_proj", "v_proj"]}},
            r"some .*k_proj.* and 3 more;",
        ),
        (
            {"config": {"target_modules": ["query"]}},
            "cannot be loaded: .*not found in the base model",
        ),
    ],
)
def test_an_adapter_that_does_not_fit_as_a_whole_is_refused(base, adapter, made, said):
    folder = adapter(**made)
    with pytest.raises(ModelError, match=said) as caught:
        opened(base, folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("IA3Config", {"feedforward_modules": []}),
        # Its product of mirrors is the identity but for rounding.
        ("HRAConfig", {"r": 4}),
    ],
)
def test_other_kinds_of_adapters_must_change_something_too(
    base, tmp_path, kind, settings
):
    peft = pytest.importorskip("peft")
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    config = getattr(peft, kind)(
        target_modules=["k_proj"], task_type="CAUSAL_LM", **settings
    )
    torch.manual_seed(0)
    peft.get_peft_model(model, config).save_pretrained(tmp_path / "untrained")
    with pytest.raises(ModelError, match="untrained changes nothing"):
        opened(base, tmp_path / "untrained")


@pytest.mark.filterwarnings("ignore")
def test_an_adapter_with_tokens_of_its_own_brings_their_rows_and_its_tokenizer(
    base, tmp_path
):
    peft = pytest.importorskip("peft")
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    tokenizer.add_tokens(["Lima", *(f"<more{n}>" for n in range(400 - len(tokenizer)))])
    tokenizer.chat_template = "TUNED {{ messages[0].content }} "
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    model.resize_token_embeddings(len(tokenizer))
    settings = peft.LoraConfig(
        r=2,
        target_modules=["q_proj"],
        modules_to_save=["embed_tokens", "lm_head"],
        init_lora_weights=False,
        task_type="CAUSAL_LM",
    )
    folder = tmp_path / "longer"
    peft.get_peft_model(model, settings).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    adapted = opened(base, folder, ",apply_chat_template=True")
    request = ScoreRequest(prompt="Paris is", continuation="Lima")
    (response,) = adapted.score([request])
    assert response.token_ids == (tokenizer.convert_tokens_to_ids("Lima"),)
    assert adapted.rendered(request) == "TUNED Paris is "
    # Without a template of its own, the base's.
    (folder / "chat_template.jinja").unlink()
    change_json(
        base / "tokenizer_config.json", chat_template="BASE {{ messages[0].content }}"
    )
    alone = load(parse_spec(str(folder), "apply_chat_template=True", device="cpu"))
    assert alone.rendered(request) == "BASE Paris is"
    assert alone.describe().name == f"{base} + {folder}"
    named = opened(base, folder, f",tokenizer={base},apply_chat_template=True")
    assert named.score([request])[0].token_ids != response.token_ids
    # Some programs save the base model's config beside the adapter.
    shutil.copy(base / "config.json", folder)
    assert (
        load(parse_spec(str(folder), device="cpu"))
        .describe()
        .name.startswith(str(base))
    )
    change_json(folder / "adapter_config.json", base_model_name_or_path="/gone")
    with pytest.raises(
        ModelError, match=r"/gone: no such .* names it as its base model"
    ):
        load(parse_spec(str(folder), device="cpu"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("has_tokenizer", [True, False])
def test_that_the_tokenizer_of_an_adapter_on_the_hub_is_not_used_is_told(
    base, adapter, monkeypatch, has_tokenizer
):
    loaded = opened(base, adapter()).parts
    monkeypatch.setattr(module, "cached_file", lambda *names, **how: has_tokenizer)
    spec = parse_spec(str(base), "peft=org/tuned", device="cpu")
    finding = module.check_adapter(spec, loaded.model, loaded.encoder)
    assert ("tokenizer=org/tuned uses it" in finding.note) == has_tokenizer
