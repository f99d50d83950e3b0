"""GGUF files out of tiny Llama checkpoints, as llama.cpp's own converter writes them."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
from safetensors.numpy import load_file


def write_gguf(folder: Path, file: Path, kind: str = "F32") -> Path:
    """Write a Llama checkpoint with a byte-level BPE tokenizer as a GGUF.

    ``kind`` is the number format of its matrices: ``F32``, or a quantisation such as ``Q8_0``.
    """
    stored_as = gguf.GGMLQuantizationType[kind]
    config = json.loads((folder / "config.json").read_text())
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(groups)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["hidden_size"] // heads)
    writer.add_rope_freq_base((config.get("rope_parameters") or config)["rope_theta"])
    writer.add_file_type(
        gguf.LlamaFileType["ALL_F32" if kind == "F32" else f"MOSTLY_{kind}"]
    )
    _add_tokenizer(writer, folder, config)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, tensor in load_file(folder / "model.safetensors").items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            count = heads if "q_proj" in name else groups
            tensor = (
                tensor.reshape(count, 2, -1, tensor.shape[1])
                .swapaxes(1, 2)
                .reshape(tensor.shape)
            )
        tensor = tensor.astype("float32")
        name = names.get_name(name, try_suffixes=(".weight",))
        if tensor.ndim == 1:
            writer.add_tensor(name, tensor)
        else:
            writer.add_tensor(
                name, gguf.quants.quantize(tensor, stored_as), raw_dtype=stored_as
            )
    _finish(writer)
    return file


def _add_tokenizer(writer: gguf.GGUFWriter, folder: Path, config: dict) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda item: item[1])
    special = {token["id"] for token in tokenizer["added_tokens"]}
    count = config["vocab_size"]
    texts = [text for text, _ in vocabulary] + [
        f"[PAD{n}]" for n in range(len(vocabulary), count)
    ]
    kinds = [gguf.TokenType.NORMAL] * len(vocabulary) + [gguf.TokenType.UNUSED] * (
        count - len(vocabulary)
    )
    for token in special:
        kinds[token] = gguf.TokenType.CONTROL
    merges = [
        one if isinstance(one, str) else " ".join(one)
        for one in tokenizer["model"]["merges"]
    ]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)


def write_as_floats(source: Path, file: Path) -> None:
    """Write a GGUF file of a Llama anew, with every tensor in float32."""
    reader, writer = gguf.GGUFReader(source), gguf.GGUFWriter(file, "llama")
    for name, field in reader.fields.items():
        # What is about the container and the number formats is the writer's to say.
        if not name.startswith("GGUF.") and name not in (
            "general.architecture",
            "general.file_type",
            "general.quantization_version",
        ):
            kind, *inner = field.types
            writer.add_key_value(
                name, field.contents(), kind, sub_type=inner[-1] if inner else None
            )
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        writer.add_tensor(
            tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        )
    _finish(writer)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
