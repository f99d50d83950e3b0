"""Command line of the recipe: ``python -m recipe`` trains the embedded checkpoint and its fine-tunes anew."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from recipe.build import DOCUMENTS, build_reference

WORLD = Path(__file__).parent.parent / "suites" / "world"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train into the folder that the command line names, and print the losses and the digests."""
    parser = argparse.ArgumentParser(
        prog="python -m recipe",
        description="Train the embedded checkpoint and its fine-tunes, on one thread.",
    )
    parser.add_argument(
        "--output", type=Path, required=True, help="folder to write, must not exist"
    )
    parser.add_argument(
        "--documents",
        type=int,
        default=DOCUMENTS,
        help="size of the corpus (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.output.exists():
        parser.error(f"{options.output}: exists already; name a folder that does not")
    report = build_reference(
        options.output,
        facts=WORLD / "facts.jsonl",
        relations=WORLD / "relations.yaml",
        documents=options.documents,
        seed=options.seed,
    )
    print(
        f"{report.steps} steps over {report.tokens:,} tokens in {report.seconds:.0f} s"
    )
    print(
        f"loss on answers: {report.losses[0]:.2f} at first, {report.losses[-1]:.2f} at last"
    )
    for name, digest in report.digests:
        print(f"{digest}  {name}/model.safetensors")


if __name__ == "__main__":
    main()
