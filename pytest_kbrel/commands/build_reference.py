"""``kbrel build reference``: the embedded checkpoint, trained anew."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.commands.output import say

if TYPE_CHECKING:
    from pytest_kbrel.commands import Commands


def register(targets: Commands) -> None:
    """Add the target."""
    parser = targets.add_parser(
        "reference", help="train the embedded checkpoint and its fine-tuned candidates anew (one thread)"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder to write, must not exist")
    parser.add_argument(
        "--documents", type=int, default=None, help="size of the corpus (default: as shipped)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel import bundled
    from recipe.build import build_reference

    world = bundled.suites() / "world"
    if options.output.exists():
        raise FileExistsError(f"{options.output}: exists already; name a folder that does not")
    extra = {} if options.documents is None else {"documents": options.documents}
    report = build_reference(
        options.output,
        facts=world / "facts.jsonl",
        relations=world / "relations.yaml",
        seed=options.seed,
        **extra,
    )
    say(f"{report.steps} steps over {report.tokens:,} tokens in {report.seconds:.0f} s")
    say(f"loss on answers: {report.losses[0]:.2f} at first, {report.losses[-1]:.2f} at last")
    for name, digest in report.digests:
        say(f"{digest}  {name}/model.safetensors")
    return 0
