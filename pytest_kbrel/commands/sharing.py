"""``kbrel sharing``: what the questions of suites have in common, and how many tokens that spares."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_kbrel.bounds import ROW
from pytest_kbrel.commands.numbers import whole
from pytest_kbrel.commands.output import say
from pytest_kbrel.errors import KbrelError, nearest

if TYPE_CHECKING:
    from pytest_kbrel.commands import Commands
    from pytest_kbrel.models.hf_feeding import Fed, Feeder
    from pytest_kbrel.planning.sharing import SharedCase
    from pytest_kbrel.records import Case

SCHEMA_VERSION = 1
_HEAD = ("case", "requests", "different", "tokens asked")


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "sharing", help="say what the questions of suites share, and how many tokens that spares a model"
    )
    parser.add_argument(
        "suite", metavar="SUITE", nargs="+", type=Path, help="a suite file, or a folder of them"
    )
    parser.add_argument(
        "--kb-model",
        metavar="SPEC",
        required=True,
        help="the checkpoint whose tokenizer counts; no weights are read",
    )
    parser.add_argument("--kb-model-args", metavar="K=V,...", default="", help="as for pytest")
    parser.add_argument("--kb-apply-chat-template", action="store_true", help="as for pytest")
    parser.add_argument("--kb-batch-size", metavar="TOKENS", default="auto", help="as for pytest")
    parser.add_argument(
        "--slice",
        metavar="NAME",
        action="append",
        default=[],
        help="only this slice or case, such as P36; again for more",
    )
    parser.add_argument(
        "--tokens-per-row", metavar="N", type=whole(ROW), help="length of a packed row (default: 128)"
    )
    parser.add_argument(
        "--show", metavar="CASE", help="print what is shared with what in this slice or case, as a tree"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE as well")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.models.counting import open_feeder
    from pytest_kbrel.models.registry import read_spec
    from pytest_kbrel.models.spec import ModelSpec
    from pytest_kbrel.models.vllm_spec import PREFIX, VllmSpec
    from pytest_kbrel.planning.sharing import shared_cases, total

    spec = read_spec(
        options.kb_model,
        options.kb_model_args,
        batch_size=options.kb_batch_size,
        chat_template=options.kb_apply_chat_template,
    )
    if not isinstance(spec, ModelSpec):
        allowed = "allowed: a checkpoint (a server does not tell what it shares)"
        if isinstance(spec, VllmSpec):
            allowed = (
                "vLLM shares prefixes in its own way; allowed: the checkpoint itself, such as "
                f"{spec.text.removeprefix(PREFIX)}"
            )
        raise KbrelError(f"--kb-model: found {options.kb_model}; {allowed}")
    every = _cases(options.suite)
    chosen = _chosen(every, options.slice, "--slice") if options.slice else every
    shown = _chosen(chosen, [options.show], "--show") if options.show else []
    feeder = open_feeder(spec, options.tokens_per_row)
    found = shared_cases(chosen, feeder, shown)
    if options.json is not None:
        from pytest_kbrel.reports.files import write_text

        write_text(options.json, _json(options, found, total(found)))
    lines = _lines(found, total(found), spec.text)
    if options.show:
        lines = _trees([case for case in found if case.calls], feeder)
    for line in lines:
        say(line)
    return 0


def _cases(paths: Sequence[Path]) -> list[Case]:
    from pytest_kbrel.suites import load_suite

    found: list[Case] = []
    for path in dict.fromkeys(paths):
        if not path.exists():
            raise KbrelError(f"{path}: no such suite or folder")
        files = sorted(path.rglob("*.kb.yaml")) if path.is_dir() else [path]
        if not files:
            raise KbrelError(f"{path}: found no suite in this folder; allowed: files called NAME.kb.yaml")
        for file in files:
            found += load_suite(file).cases
    return found


def _chosen(cases: Sequence[Case], names: Sequence[str], flag: str) -> list[Case]:
    known = dict.fromkeys(name for case in cases for name in (case.slice, case.id))
    for name in names:
        if name not in known:
            raise KbrelError(
                f"{flag}: found {name!r}{nearest(name, known)}; allowed: a slice or a case, such as "
                f"{next(iter(known), 'none of which there is any')}"
            )
    return [case for case in cases if case.slice in names or case.id in names]


def _lines(cases: Sequence[SharedCase], every: SharedCase, model: str) -> Iterator[str]:
    from itertools import groupby

    from pytest_kbrel.reports.text import one_line

    ways = [way for way, _ in every.fed]
    heads = [*_HEAD, *(f"{way} fed" for way in ways), "saved"]
    for suite, some in groupby(cases, key=lambda case: case.suite):
        yield one_line(suite)
        rows = [_row(case) for case in some]
        yield from _table([heads, *rows])
        yield ""
    yield f"all: {every.requests:,} questions, {every.asked:,} tokens if each were fed whole"
    yield f"counted with the tokenizer of {one_line(model)}"
    rows = [["way", "tokens fed", "padding", "saved", "times fewer"]]
    for way, fed in every.fed:
        rows.append(
            [way, f"{fed.tokens:,}", f"{fed.padding:,}", _saved(every.asked, fed), _times(every.asked, fed)]
        )
    yield from _table(rows)
    yield ""
    yield (
        "which way a checkpoint gets is tried on it when it is loaded: packed where it holds, else prefix, "
        "else plain"
    )
    if not every.fixed:
        yield "where questions hang on answers, these are the most there can be"


def _row(case: SharedCase) -> list[str]:
    from pytest_kbrel.reports.text import one_line

    best = case.fed[0][1]
    counts = (case.requests, case.distinct, case.asked, *(fed.tokens for _, fed in case.fed))
    return [one_line(case.id, 40), *(f"{count:,}" for count in counts), _saved(case.asked, best)]


def _saved(asked: int, fed: Fed) -> str:
    return f"{100 * (1 - fed.tokens / asked):.1f} %" if asked else ""


def _times(asked: int, fed: Fed) -> str:
    return f"{asked / fed.tokens:.1f}" if fed.tokens else ""


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    from pytest_kbrel.reports.text import cells, pad

    widths = [max(cells(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        padded = (
            pad(cell, width, right=at > 0) for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(padded).rstrip()


def _trees(cases: Sequence[SharedCase], feeder: Feeder) -> Iterator[str]:
    from pytest_kbrel.planning.tree import tree_lines
    from pytest_kbrel.reports.text import count, one_line

    for case in cases:
        for call in case.calls:
            _, _, round_, method = call.kind
            done = "scored" if method == "score" else "answered"
            questions = count(len(call.requests), "question")
            yield f"{one_line(case.id, 60)}, round {round_ + 1}: {questions} {done}"
            groups = feeder.groups(*feeder.read(call.requests), feeder.ways[0])
            for line in tree_lines(groups, feeder.text):
                yield f"  {line}"
            yield ""


def _json(options: argparse.Namespace, cases: Sequence[SharedCase], every: SharedCase) -> str:
    from pytest_kbrel import __version__

    found = {
        "schema_version": SCHEMA_VERSION,
        "kbrel_version": __version__,
        "model": options.kb_model,
        "cases": [{"id": f"{case.suite}::{case.id}", **_figures(case)} for case in cases],
        "all": _figures(every),
    }
    return json.dumps(found, indent=1, ensure_ascii=True) + "\n"


def _figures(case: SharedCase) -> dict[str, Any]:
    return {
        "requests": case.requests,
        "distinct": case.distinct,
        "tokens_asked": case.asked,
        "fixed": case.fixed,
        "ways": {
            way: {"tokens_fed": fed.tokens, "padding": fed.padding, "batches": fed.batches}
            for way, fed in case.fed
        },
    }
