"""Answers by the continuous batching of transformers itself, to be timed beside ours.

    OMP_NUM_THREADS=1 python benchmarks/continuous.py --facts 6

It takes no stop strings and gives no probabilities: it writes on to the last token, and texts are cut
afterwards. On a CPU the size of its cache must be stated, since it asks a GPU for it.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import ContinuousBatchingConfig

# In slots; what a page of its cache holds.
_PAGE = 64


def continuous(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str | Sequence[int]],
    max_new_tokens: int,
) -> list[str]:
    """Return the line that follows each prompt, greedily; a prompt is a text or token ids."""
    ids = [
        tokenizer(p)["input_ids"] if isinstance(p, str) else list(p) for p in prompts
    ]
    settings = copy.deepcopy(model.generation_config)
    settings.max_new_tokens, settings.do_sample = max_new_tokens, False
    results = model.generate_batch(
        inputs=ids,
        generation_config=settings,
        continuous_batching_config=_sizes(model, ids, max_new_tokens),
    )
    if len(results) != len(ids):
        raise RuntimeError(f"{len(results)} of {len(ids)} prompts were answered")
    # Names end with the prompt's number.
    ordered = sorted(results.items(), key=lambda item: int(item[0].rpartition("_")[2]))
    texts = (
        tokenizer.decode(answer.generated_tokens, skip_special_tokens=True)
        for _, answer in ordered
    )
    return [str(text).partition("\n")[0].strip() for text in texts]


def _sizes(
    model: Any, ids: Sequence[Sequence[int]], max_new_tokens: int
) -> ContinuousBatchingConfig:
    if model.device.type != "cpu":
        return ContinuousBatchingConfig()
    pages = sum(-(-(len(one) + max_new_tokens) // _PAGE) for one in ids)
    return ContinuousBatchingConfig(
        page_size=_PAGE,
        num_blocks=pages + 8,
        max_batch_tokens=max(512, *map(len, ids)),
        max_requests_per_batch=len(ids),
    )


def main() -> None:
    """Time it beside ours on the questions of ``speed.py``."""
    from speed_work import made, tasks

    from pytest_kbrel.records import GenerateRequest

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default="llama-35m")
    parser.add_argument("--facts", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = made(given.model, Path(folder), "float32", "cpu")
        (task,) = (task for task in tasks(given.facts) if task.name == "answers-prefix")
        requests = [
            GenerateRequest(prompt=prompt, max_new_tokens=12) for prompt in task.prompts
        ]
        prompts = [list(model.parts.encoder.prompt(prompt)) for prompt in task.prompts]
        ways = {
            "kbrel": lambda: [answer.text for answer in model.generate(requests)],  # type: ignore[union-attr]
            "continuous": lambda: continuous(
                model.parts.model, model.parts.tokenizer, prompts, 12
            ),
        }
        first = {way: run() for way, run in ways.items()}
        equal = sum(one == other for one, other in zip(*first.values(), strict=True))
        print(f"{equal} of {len(prompts)} equal")
        for _ in range(given.rounds):
            for way, run in ways.items():
                started, wall = time.process_time(), time.perf_counter()
                run()
                print(
                    f"{way}: {time.process_time() - started:.2f} s of processor, "
                    f"{time.perf_counter() - wall:.2f} s in all"
                )


if __name__ == "__main__":
    main()
