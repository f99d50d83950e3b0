"""Arguments of lm-evaluation-harness's models that have another counterpart here, or none.

A string that was written for lm-eval works unchanged: what it asks for is done, or one line says what happens
instead, or it is refused where the figures would be others than it asks for. The names and defaults are those
of lm-eval's classes ``HFLM``, ``VLLM`` and ``LocalCompletionsAPI``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_kbrel.errors import ModelError
from pytest_kbrel.records import record


@record
class Foreign:
    """An argument without an effect of its own: ``instead`` says what happens, or why it is refused.

    A value that ``same`` matches as a whole (a regular expression, in lower case) asks for what is done
    anyway, and nothing is said. Another is refused if ``refused`` matches it, else told.
    """

    instead: str
    same: str = ""
    refused: str = ""


_ANY = ".*"
_SEQUENCES = (
    "it counts sequences, and batches are planned in tokens by the memory that is free; "
    "--kb-batch-size TOKENS sets the most"
)
_ANSWER_LENGTH = "each question says how many tokens its answer may have"
_CUT = "a prompt longer than the model takes is an error of its fact and is never cut"
_SOFTMAX = Foreign(
    instead="probabilities come from a float32 softmax, whatever the number format of the weights",
    same="(torch[.])?(float32|fp32)|auto",
    refused="(?!(torch[.])?(float64|double)$).*",
)

HF: Mapping[str, Foreign] = {
    "batch_size": Foreign(instead=_SEQUENCES, same="auto(:[0-9.]+)?"),
    "max_batch_size": Foreign(instead=_SEQUENCES),
    "truncation": Foreign(instead=_CUT, same="false"),
    "logits_cache": Foreign(
        instead="what questions share is computed once where the numbers stay the same",
        same="true",
    ),
    "low_cpu_mem_usage": Foreign(
        instead="safetensors are always mapped, never read into memory twice", same="true"
    ),
    "softmax_dtype": _SOFTMAX,
    "mixed_precision_dtype": Foreign(
        instead="autocast is not used; dtype=bfloat16 runs the whole model in another number format",
        refused=_ANY,
    ),
    "delta": Foreign(
        instead="the weights of two checkpoints are not added here; add them, save the sum with "
        "save_pretrained, and give that folder",
        refused=_ANY,
    ),
    "autogptq": Foreign(
        instead="transformers loads a GPTQ checkpoint by the quantization_config of its config.json",
        same="false",
        refused="(?!true$).*",
    ),
    "gptqmodel": Foreign(
        instead="transformers loads a GPTQ checkpoint by the quantization_config of its config.json",
        same="false",
    ),
    "tp_plan": Foreign(
        instead="tensor parallelism needs several processes for one model; allowed: parallelize=True, or "
        "vllm/… with tensor_parallel_size",
        refused=_ANY,
    ),
    # lighteval's word for torch.compile.
    "compile": Foreign(
        instead="torch.compile made scoring slower where it was measured; allowed: False",
        same="false",
        refused=_ANY,
    ),
}
"""By name, of lm-eval's model ``hf``."""

VLLM: Mapping[str, Foreign] = {
    "batch_size": Foreign(
        instead="vLLM batches by itself; max_num_seqs sets how many sequences run at once",
        same="auto(:[0-9.]+)?",
    ),
    "max_batch_size": Foreign(instead="vLLM batches by itself, up to max_num_seqs sequences"),
    "max_gen_toks": Foreign(instead=_ANSWER_LENGTH),
    "swap_space": Foreign(instead="vLLM has no swap space any more"),
    "seed": Foreign(instead="answers are greedy, nothing is drawn"),
    "device": Foreign(
        instead="vLLM chooses the device; CUDA_VISIBLE_DEVICES says which GPUs it sees",
        same="auto|cuda",
        refused=_ANY,
    ),
    "truncation_side": Foreign(instead=_CUT),
    "tokenizer_mode": Foreign(
        instead="prompts are tokenised by the tokenizer that transformers loads", same="auto", refused=_ANY
    ),
    "tokenizer_revision": Foreign(
        instead="the tokenizer has the checkpoint's own revision; another is named by tokenizer=FOLDER",
        refused=_ANY,
    ),
    "lora_local_path": Foreign(
        instead="vllm/ runs no adapters; allowed: hf/… with peft=, or the merged checkpoint", refused=_ANY
    ),
    "max_lora_rank": Foreign(instead="vllm/ runs no adapters"),
    "enable_prefix_caching": Foreign(instead="vLLM's prefix cache stays on", same="true"),
}
"""By name, of lm-eval's model ``vllm``."""

OPENAI: Mapping[str, Foreign] = {
    "batch_size": Foreign(
        instead="each request holds one prompt; max_concurrent says how many are under way",
        same="1|auto",
    ),
    "max_gen_toks": Foreign(instead=_ANSWER_LENGTH),
    "max_length": Foreign(
        instead="a prompt that is too long for the server is an error of its fact, never cut"
    ),
    "truncate": Foreign(
        instead="a prompt that is too long for the server is an error of its fact, never cut",
        same="false",
    ),
    "tokenizer": Foreign(instead="prompts are sent as text, and the server tokenises them"),
    "tokenizer_backend": Foreign(
        instead="prompts are sent as text, and the server tokenises them", same="none"
    ),
    "tokenized_requests": Foreign(
        instead="prompts are sent as text, and the server tokenises them", same="false"
    ),
    "use_fast_tokenizer": Foreign(instead="no tokenizer is loaded"),
    "trust_remote_code": Foreign(instead="no tokenizer is loaded", same="false"),
    "revision": Foreign(instead="it names a tokenizer's version, and none is loaded"),
    "add_bos_token": Foreign(
        instead="the server adds BOS or does not, and nothing here can change that",
        same="false",
        refused=_ANY,
    ),
    "custom_prefix_token_id": Foreign(instead="a server is not asked for probabilities of given texts"),
    "max_images": Foreign(instead="no question has an image"),
    "eos_string": Foreign(instead="where an answer ends is said by each question", refused=_ANY),
    "verify_certificate": Foreign(
        instead="certificates are always checked; the environment's SSL_CERT_FILE names those of your own",
        same="true",
        refused=_ANY,
    ),
    "ca_cert_path": Foreign(
        instead="give the file in the environment, SSL_CERT_FILE=FILE, which holds for the whole process",
        refused=_ANY,
    ),
    "auth_token": Foreign(
        instead="command lines are logged; put the key into the environment, and name the variable with "
        "api_key_env=NAME",
        refused=_ANY,
    ),
    "header": Foreign(
        instead="headers may hold keys, and command lines are logged; a key comes from the environment, "
        "api_key_env=NAME",
        refused=_ANY,
    ),
}
"""By name, of lm-eval's models ``local-completions``, ``local-chat-completions`` and their kin."""

_SECRET = ("auth_token", "header")


def public(key: str, value: str) -> str:
    """Return an argument as a message may show it: without its value where that may be a secret."""
    return f"{key}=…" if key in _SECRET or "@" in value else f"{key}={value:.60}"


def understood(args: Mapping[str, str], foreign: Mapping[str, Foreign]) -> tuple[dict[str, str], list[str]]:
    """Return the arguments that have an effect, and a line on each that has none though it asks for one.

    ``None`` stands for the default, as lm-eval reads it. Raises :class:`ModelError` for an argument that
    cannot be done and would change the figures.
    """
    own: dict[str, str] = {}
    told: list[str] = []
    for key, value in args.items():
        if value.lower() == "none":
            continue
        if key not in foreign:
            own[key] = value
            continue
        rule, low = foreign[key], value.lower()
        if re.fullmatch(rule.same, low):
            continue
        shown = public(key, value)
        if rule.refused and re.fullmatch(rule.refused, low):
            raise ModelError(f"model-args: {shown} is refused: {rule.instead}")
        told.append(f"model-args: {shown} is not used: {rule.instead}")
    return own, told
