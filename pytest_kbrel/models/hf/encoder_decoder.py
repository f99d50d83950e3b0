"""Greedy continuations by encoder-decoder models: each prompt is read once, and texts that have ended leave.

All texts of a batch begin together, and none ever has a gap, for such a decoder need not take positions. What
waits comes in with the next batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache, EncoderDecoderCache

from pytest_kbrel.models.hf.kv_cache import roomy_cache
from pytest_kbrel.models.hf.logprobs import right_padded
from pytest_kbrel.models.hf.sequence import Line, take_next
from pytest_kbrel.models.hf.stopping import Continuation, Endings
from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.records import Failed, GenerateRequest

# Texts leave when so large a share of the batch has ended: doing so copies the cache.
_ENDED = 0.25


@torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
def continue_encoded(
    model: Any, prompts: Sequence[Ids], requests: Sequence[GenerateRequest], endings: Endings
) -> list[Continuation | Failed]:
    """Continue prompts of any lengths, one answer each; ``requests`` must be greedy ones."""
    lines = [Line(number, request, endings) for number, request in enumerate(requests)]
    found: list[Continuation | Failed] = [Failed(error="not asked")] * len(lines)
    distinct = {ids: place for place, ids in enumerate(dict.fromkeys(prompts))}
    tokens = right_padded(list(distinct), int(model.generation_config.pad_token_id)).to(model.device)
    mask = right_padded([[1] * len(ids) for ids in distinct], 0).to(model.device)
    encoded = model.get_encoder()(input_ids=tokens, attention_mask=mask)
    rows = torch.tensor([distinct[ids] for ids in prompts], device=model.device)
    states, mask = encoded.last_hidden_state[rows.to(encoded.last_hidden_state.device)], mask[rows]
    own = roomy_cache(len(lines), max(request.max_new_tokens for request in requests), [])
    cache = EncoderDecoderCache(own, DynamicCache())
    start = int(model.generation_config.decoder_start_token_id)
    while lines:
        fed = [[line.written[-1] if line.written else start] for line in lines]
        logits = model(
            # Of its own class: some decoders ask for more than the states.
            encoder_outputs=type(encoded)(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=torch.tensor(fed, device=model.device),
            past_key_values=cache,
            use_cache=True,
        ).logits
        take_next(lines, range(len(lines)), logits[:, -1])
        over = [line for line in lines if line.over]
        if len(over) >= _ENDED * len(lines):
            for line in over:
                found[line.number] = line.result()
            places = [place for place, line in enumerate(lines) if not line.over]
            lines = [lines[place] for place in places]
            if lines:
                kept = torch.tensor(places, device=model.device)
                states, mask = states[kept.to(states.device)], mask[kept]
                for part in (cache.self_attention_cache, cache.cross_attention_cache):
                    for layer in part.layers:
                        layer.batch_select_indices(kept.to(layer.keys.device))
    return found
