"""Checks of a checkpoint, whoever runs it: each raises ModelError, or says what it found.

``kbrel check`` prints what loading finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.chat import ChatTemplate
from pytest_kbrel.models.checkpoint.endings import vocabulary_of
from pytest_kbrel.models.checkpoint.files import (
    bos_setting,
    check_contents,
    unread_weights,
    weight_files,
)
from pytest_kbrel.models.checkpoint.spec import ModelSpec
from pytest_kbrel.models.tokens import PromptEncoder
from pytest_kbrel.records import GenerateRequest, record

# Of a checkpoint's settings of generation, what is used, and what says nothing of it.
_KEPT = {
    *("eos_token_id", "bos_token_id", "pad_token_id", "decoder_start_token_id"),
    *("transformers_version", "_from_model_config", "use_cache"),
}


_SAMPLE = "Which city?"


# Words of some writings.
_WRITINGS = ("Zürich", "Москва", "北京", "القاهرة")


@record
class Finding:
    """Part of a checkpoint that was looked at, and its state; ``note`` is for readers of its figures."""

    part: str
    state: str
    note: str = ""


def notes_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the notes among findings."""
    return tuple(finding.note for finding in findings if finding.note)


def check_weights(spec: ModelSpec, folder: Path) -> tuple[Finding, Mapping[str, str]]:
    """Return what is there of weights, and the number formats of its tensors; raises as `check_contents`."""
    formats = check_contents(folder, gguf_file=spec.gguf_file)
    if spec.gguf_file:
        return Finding(part="weights", state=spec.gguf_file), formats
    files = weight_files(folder)
    kinds = ", ".join(sorted({*formats.values()}))
    state = f"{len(formats)} tensors ({kinds}) in {files[0].name}"
    if len(files) > 1:
        state += f" and {len(files) - 1} more"
    unread = ", ".join(unread_weights(folder))
    note = f"warning: other weights lie beside those that were loaded: {unread}"
    return Finding(part="weights", state=state, note=note if unread else ""), formats


def check_architecture(spec: ModelSpec, config: Any) -> None:
    """Refuse classifiers and masked models: some load as causal ones and write nonsense.

    A config that names the file of its weights is refused too: others read, and digests cover, another.
    """
    if other := getattr(config, "transformers_weights", None):
        raise ModelError(
            f"{spec.path}: config.json says transformers_weights={other}, which other programs do not read; "
            "allowed: model.safetensors or its index, and no such key"
        )
    named = config.architectures or []
    if any("MaskedLM" in name or name.endswith("Classification") for name in named):
        raise ModelError(
            f"{spec.path}: {named[0]} does not write text; allowed are causal and encoder-decoder models"
        )


def check_kind(spec: ModelSpec, config: Any) -> None:
    """Refuse a checkpoint of another kind than the user says: another class would read other weights."""
    own_kind = "seq2seq" if config.is_encoder_decoder else "causal"
    if spec.kind not in ("", own_kind):
        raise ModelError(
            f"{spec.path}: model-args backend={spec.kind}, but config.json says {own_kind}"
        )


def check_numbers(
    spec: ModelSpec, weights: Iterable[tuple[str, torch.Tensor]]
) -> Finding:
    """Refuse weights that are not all finite, naming the tensor."""
    kinds = set()
    for name, tensor in weights:
        if not tensor.is_floating_point() or tensor.numel() == 0:
            continue
        kinds.add(str(tensor.dtype).removeprefix("torch."))
        # One pass without a mask of the tensor's size: both ends are NaN as soon as one value is.
        if not all(torch.isfinite(end) for end in torch.aminmax(tensor.detach())):
            raise ModelError(
                f"{spec.path}: the weights hold NaN or infinity in {name}; allowed are finite numbers"
            )
    return Finding(part="numbers", state=f"{', '.join(sorted(kinds))}, all finite")


def check_fit(spec: ModelSpec, model: Any, tokenizer: Any) -> Finding:
    """Refuse a tokenizer with ids beyond the rows of the embedding that a plain text may get.

    Added special tokens may lie there, but for those that begin and end texts: a text has them only where
    it spells them out, and such a question is an error of its fact.
    """
    rows = vocabulary_of(model)
    added = tokenizer.added_tokens_decoder
    used = tokenizer.bos_token_id, tokenizer.eos_token_id
    beyond = [
        (token, number)
        for token, number in tokenizer.get_vocab().items()
        if number >= rows
        and (number in used or number not in added or not added[number].special)
    ]
    if beyond:
        token, highest = max(beyond, key=lambda item: item[1])
        raise ModelError(
            f"{spec.path}: the tokenizer does not fit: token {token!r} has id {highest}, but the model knows "
            f"the ids 0 to {rows - 1} only; model-args tokenizer=FOLDER names another tokenizer"
        )
    if spec.prefix_token_id is not None and spec.prefix_token_id >= rows:
        raise ModelError(
            f"{spec.path}: prefix_token_id={spec.prefix_token_id}, but the model knows the ids 0 to "
            f"{rows - 1} only"
        )
    return Finding(
        part="embedding", state=f"{rows:,} rows for {len(tokenizer):,} tokens"
    )


def check_prompts(
    spec: ModelSpec, folder: Path, encoder: PromptEncoder
) -> Iterator[Finding]:
    """Yield what is found of tokenizer, prompts and chat template; ``folder`` is the checkpoint's."""
    tokenizer, template = encoder.tokenizer, encoder.template
    state = [type(tokenizer).__name__]
    if cut := tokenizer.init_kwargs.get("max_length"):
        state.append(f"its cut at {cut} tokens unused")
    for text in _WRITINGS:
        try:
            encoder.prompt(text)
        except ValueError:
            state.append(f"no tokens for {text}")
    yield Finding(
        part="tokenizer",
        state=", ".join(state),
        note=regex_note(spec, tokenizer),
    )
    sample = encoder.rendered(GenerateRequest(prompt=_SAMPLE, max_new_tokens=1))
    yield Finding(
        part="prompt", state=repr(sample), note=bos_note(spec, folder, encoder)
    )
    use = "used" if template else "none"
    if template is None and tokenizer.chat_template:
        try:
            ChatTemplate(tokenizer, spec.chat)
            use = "not used"
        except ModelError as error:
            use = f"not used; it would be refused: {error}"
    note = "; ".join(encoder.notes)
    yield Finding(part="chat template", state=use, note=note)
    marks = encoder.marks
    thoughts = f"between {marks.opening} and {marks.closing}" if marks else "no marks"
    if encoder.unscorable:
        thoughts += f"; {encoder.unscorable}"
    yield Finding(part="thoughts", state=thoughts)


def bos_note(spec: ModelSpec, folder: Path, encoder: PromptEncoder) -> str:
    """Return a note if a tokenizer does not add BOS as its config says; empty if it does, or BOS was typed.

    ``folder`` is the checkpoint's; a tokenizer of another place has its config there.
    """
    setting = bos_setting(Path(spec.tokenizer) if spec.tokenizer else folder)
    if (
        setting in (None, encoder.adds_bos)
        or spec.add_bos_token is not None
        or spec.chat_template
        or encoder.tokenizer.bos_token_id is None
    ):
        return ""
    does = f"puts {'' if encoder.adds_bos else 'no '}BOS in front of prompts"
    return (
        f"warning: tokenizer_config.json says add_bos_token={setting}, and the tokenizer that transformers "
        f"made of it {does}: so they were asked; model-args add_bos_token=True or False says which is meant"
    )


def check_endings(config: Any, own: Any, encoder: PromptEncoder) -> Finding:
    """Return where texts end, with a note if not where the chat template ends an answer.

    ``config`` are the settings of generation in use, ``own`` the checkpoint's.
    """
    ends = config.eos_token_id or ()
    names = encoder.tokenizer.convert_ids_to_tokens(list(ends))
    changed = {name for name, value in own.to_diff_dict().items() if value}
    unused = sorted(changed - _KEPT)
    state = f"at {' '.join(map(str, names)) or 'no token'}" + (
        f"; of generation_config.json not used: {', '.join(unused)}" if unused else ""
    )
    end = encoder.template.end if encoder.template is not None else None
    note = ""
    if end is not None and end not in ends:
        note = (
            f"warning: the chat template ends an answer with {encoder.tokenizer.convert_ids_to_tokens(end)}, and "
            "this checkpoint does not stop there: what it writes behind it is judged with the answer; "
            "eos_token_id in generation_config.json names the tokens that end a text"
        )
    return Finding(part="endings", state=state, note=note)


def regex_note(spec: ModelSpec, tokenizer: Any) -> str:
    """Return a note if transformers takes a tokenizer for a wrong one of Mistral's; else empty."""
    # Where the mark is set depends on the version.
    marked = (tokenizer, getattr(tokenizer, "backend_tokenizer", None))
    if spec.fix_mistral_regex is not None or all(
        getattr(one, "fix_mistral_regex", True) for one in marked
    ):
        return ""
    return (
        "warning: transformers takes this tokenizer for one of Mistral's with a wrong pattern, which makes other "
        "tokens than the model was trained with; model-args fix_mistral_regex=True mends it, False keeps it"
    )
