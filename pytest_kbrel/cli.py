"""The ``kbrel`` command: what needs no pytest run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_kbrel import __version__
from pytest_kbrel.errors import KbrelError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 with one line on standard error when the user must mend something."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (KbrelError, OSError) as error:
        print(f"kbrel: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kbrel", description="Tools around suites that gate language-model checkpoints."
    )
    parser.add_argument("--version", action="version", version=f"kbrel {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    init = commands.add_parser("init", help="copy the world suite and its baseline into a folder")
    init.add_argument("directory", type=Path, nargs="?", default=Path())
    init.set_defaults(run=_init)

    schema = commands.add_parser("schema", help="print a JSON Schema")
    schema.add_argument("of", choices=("suite", "report"), nargs="?", default="suite")
    schema.set_defaults(run=_schema)

    build = commands.add_parser("build", help="make something from its sources")
    targets = build.add_subparsers(required=True, metavar="WHAT")
    reference = targets.add_parser(
        "reference", help="train the embedded checkpoint and its fine-tuned candidates anew (one thread)"
    )
    reference.add_argument("--output", type=Path, required=True, help="folder to write, must not exist")
    reference.add_argument(
        "--documents", type=int, default=None, help="size of the corpus (default: as shipped)"
    )
    reference.add_argument("--seed", type=int, default=0)
    reference.set_defaults(run=_build_reference)
    return parser


def _init(options: argparse.Namespace) -> int:
    from pytest_kbrel import bundled

    for path in bundled.copy_to(options.directory):
        print(path)
    return 0


def _schema(options: argparse.Namespace) -> int:
    from pytest_kbrel import bundled

    print(bundled.schema(options.of), end="")
    return 0


def _build_reference(options: argparse.Namespace) -> int:
    from pytest_kbrel import bundled
    from pytest_kbrel.reference.build import build_reference

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
    print(f"{report.steps} steps over {report.tokens:,} tokens in {report.seconds:.0f} s")
    print(f"loss on answers: {report.losses[0]:.2f} at first, {report.losses[-1]:.2f} at last")
    for name, digest in report.digests:
        print(f"{digest}  {name}/model.safetensors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
