"""Tiny random checkpoints of many architectures, and a plain second way to compute what they answer."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import transformers as tf
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from pytest_kbrel.models.pretrained import quiet

SENTENCES = (
    "Paris is the capital of France.",
    "The capital of Japan is Tokyo, a very large city.",
    "Question: Which river flows through Cairo?\nAnswer: the Nile\n",
    "Who wrote the play Hamlet? William Shakespeare wrote it.",
    "unsure is what you say when you do not know the answer.",
)
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
PAD, BOS, EOS = 0, 1, 2
VOCABULARY = 400

_ENDS = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}
_ONE_END = {"bos_token_id": EOS, "eos_token_id": EOS}
_BASE = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2}
_ATTENTION = {**_BASE, "num_attention_heads": 4}
_SMALL = {
    **_ATTENTION,
    **_ENDS,
    "intermediate_size": 64,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
_WINDOW = {**_SMALL, "sliding_window": 16, "head_dim": 8}
_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, **_ONE_END}
_T5 = {
    **{"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 64},
    **{"pad_token_id": PAD, "eos_token_id": EOS},
    **{"num_layers": 2, "num_heads": 4, "decoder_start_token_id": PAD},
}
_BART = {
    **{f"{part}_layers": 2 for part in ("encoder", "decoder")},
    **{f"{part}_attention_heads": 4 for part in ("encoder", "decoder")},
    **{f"{part}_ffn_dim": 64 for part in ("encoder", "decoder")},
    **{"vocab_size": VOCABULARY, "d_model": 32, "max_position_embeddings": 256},
    **{**_ENDS, "decoder_start_token_id": EOS},
}


def _plain(config_class, around, **options):
    return lambda: config_class(**options), around


# name: (how its config is made, which special tokens its tokenizer puts around a text). One of each kind:
# experts and a window, windows in some layers, positions that are learned, counted from the mask, or a
# bias (bloom), states in place of a cache.
CAUSAL = {
    "llama": _plain(tf.LlamaConfig, "bos", **_SMALL),
    "mixtral": _plain(tf.MixtralConfig, "bos", num_local_experts=4, **_WINDOW),
    "gemma3": _plain(tf.Gemma3TextConfig, "bos", query_pre_attn_scalar=8, **_WINDOW),
    "gpt2": _plain(tf.GPT2Config, "", vocab_size=VOCABULARY, **_GPT2),
    "opt": _plain(
        tf.OPTConfig,
        "bos",
        ffn_dim=64,
        word_embed_proj_dim=32,
        max_position_embeddings=256,
        **_ATTENTION,
        **_ENDS,
    ),
    "bloom": _plain(tf.BloomConfig, "", n_head=4, **_BASE, **_ENDS),
    "rwkv": _plain(
        tf.RwkvConfig,
        "",
        attention_hidden_size=32,
        intermediate_size=64,
        **_BASE,
        **_ONE_END,
    ),
    "mamba": _plain(
        tf.MambaConfig, "", state_size=8, pad_token_id=PAD, **_BASE, **_ONE_END
    ),
}
ENCODER_DECODER = {
    "t5": _plain(tf.T5Config, "eos", **_T5),
    "bart": _plain(tf.BartConfig, "bos eos", **_BART),
}
ALL = {**CAUSAL, **ENCODER_DECODER}
# For vLLM itself: its kernels for CPUs take no narrower heads.
WIDE = {
    "wide-llama": _plain(tf.LlamaConfig, "bos", head_dim=32, **_SMALL),
    "wide-qwen3": _plain(tf.Qwen3Config, "", head_dim=32, **_SMALL),
}
KINDS = {**ALL, **WIDE}


def make_tokenizer(
    folder: Path, around: str = "bos", *, vocabulary: int = VOCABULARY, **options
) -> None:
    """Train a byte-level BPE that puts the named special tokens around a text, and save it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 4, trainer)
    if around:
        before = "<s> " if "bos" in around else ""
        behind = " </s>" if "eos" in around else ""
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{before}$A{behind}", special_tokens=[("<s>", BOS), ("</s>", EOS)]
        )
    tf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>" if around != "eos" else None,
        eos_token="</s>",
        unk_token="<unk>",
        **options,
    ).save_pretrained(folder)


def make_checkpoint(
    folder: Path, kind: str = "llama", *, seed: int = 0, **tokenizer_options
) -> Path:
    """Save a random checkpoint whose matrices are scaled up, so that its probabilities differ clearly."""
    make_config, around = KINDS[kind]
    factory = (
        tf.AutoModelForSeq2SeqLM if kind in ENCODER_DECODER else tf.AutoModelForCausalLM
    )
    with quiet(), torch.random.fork_rng():
        torch.manual_seed(seed)
        model = factory.from_config(make_config())
        with torch.no_grad():
            for name, tensor in model.named_parameters():
                if tensor.dim() == 2 and "relative" not in name and "A_log" not in name:
                    tensor.copy_(torch.randn_like(tensor) * _scale(name))
        model.save_pretrained(folder)
        make_tokenizer(folder, around, **tokenizer_options)
    return folder


def _scale(name: str) -> float:
    # T5's embedding is its head too, where it is divided by the root of the width.
    return 2.0 if "shared" in name else 0.5 if "embed" in name else 0.35


def change_weights(folder: Path, change) -> None:
    """Rewrite model.safetensors after ``change(tensors)``."""
    file = folder / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file, metadata={"format": "pt"})


def change_json(file: Path, **values) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


class Plain:
    """The slow way: one unpadded row, all logits, no cache, no generate."""

    def __init__(self, folder: Path) -> None:
        with quiet():
            config = tf.AutoConfig.from_pretrained(folder)
            factory = (
                tf.AutoModelForSeq2SeqLM
                if config.is_encoder_decoder
                else tf.AutoModelForCausalLM
            )
            self.model = factory.from_pretrained(folder, dtype="float32").eval()
            self.tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        self.start = (
            getattr(config, "decoder_start_token_id", None)
            if config.is_encoder_decoder
            else None
        )

    def next_token(self, prompt: list[int], written: list[int]) -> torch.Tensor:
        """Return the probabilities of what follows ``written`` after ``prompt``."""
        with torch.inference_mode():
            if self.start is None:
                logits = self.model(
                    torch.tensor([prompt + written]), use_cache=False
                ).logits
            else:
                decoder = torch.tensor([[self.start, *written]])
                logits = self.model(
                    torch.tensor([prompt]), decoder_input_ids=decoder, use_cache=False
                ).logits
        return logits[0, -1].double().softmax(-1)

    def probabilities(
        self, prompt: list[int], targets: list[int], lead: list[int]
    ) -> list[float]:
        return [
            float(self.next_token(prompt, lead + targets[:k])[t])
            for k, t in enumerate(targets)
        ]

    def greedy(self, prompt: list[int], count: int, ends: set[int]) -> list[int]:
        written: list[int] = []
        while len(written) < count and not (written and written[-1] in ends):
            written.append(int(self.next_token(prompt, written).argmax()))
        return written
