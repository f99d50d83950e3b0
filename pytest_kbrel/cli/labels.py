"""``kbrel labels``: answers of a recorded run, drawn at random, for a human to label (--kb-judge-labels)."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_kbrel.bounds import FLAG_SEED, LIMIT, limit_value
from pytest_kbrel.catalogue.probes import probe_named
from pytest_kbrel.cli.arguments import (
    add_json_flag,
    integer_within,
    new_file,
    print_result,
)
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.words import SUITE_SUFFIX

if TYPE_CHECKING:
    from pytest_kbrel.cli.arguments import Commands
    from pytest_kbrel.cli.compare.pairing import RecordedOutcomes

_DEFAULT = 150


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "labels",
        help="draw answers of a recorded run for a human to label, by which a judge's error is measured",
        epilog='write "right", "wrong" or "missing" as the label of each line, and give the file to '
        "pytest --kb-judge-labels; call it where pytest was called, for the suites are read again",
    )
    parser.add_argument(
        "run_folder", metavar="RUN", type=Path, help="the folder of its reports"
    )
    parser.add_argument(
        "--output",
        metavar="OUT.jsonl",
        type=Path,
        required=True,
        help="the answers to label, one a line",
    )
    parser.add_argument(
        "--number",
        metavar="N",
        type=integer_within(LIMIT),
        default=_DEFAULT,
        help=f"how many answers to draw (default: {_DEFAULT})",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace the output if it is there"
    )
    add_json_flag(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.cli.compare.pairing import read_outcomes
    from pytest_kbrel.reports import REPORT, earlier_note

    report = options.run_folder / REPORT
    if not report.is_file():
        allowed = f"the folder of a run's reports{earlier_note(report)}"
        raise KbrelError(f"{options.run_folder}: has no {REPORT}; allowed: {allowed}")
    side = read_outcomes(str(options.run_folder), Path())
    if isinstance(side, str):
        raise KbrelError(
            f"{options.run_folder}: {side}; allowed: a report folder as a run wrote it"
        )
    # A judge says nothing new of an answer that it has judged.
    answers = {
        json.dumps([row[key] for key in ("question", "answers", "prediction")]): row
        for row in _rows(side)
    }
    if not answers:
        allowed = "a run of suites with Head-to-Tail or Reliable KB, and their files as they were"
        raise KbrelError(
            f"{options.run_folder}: no answer of it is for a judge; allowed: {allowed}"
        )
    drawn = random.Random(0).sample(sorted(answers), min(options.number, len(answers)))
    with new_file(options.output, force=options.force) as stream:
        for key in drawn:
            stream.write(json.dumps(answers[key], ensure_ascii=False) + "\n")
    line = (
        f'{len(drawn)} of {len(answers)} answers written to {options.output}: write "right", "wrong" or '
        '"missing" as the label of each'
    )
    document = {"output": options.output, "drawn": len(drawn), "answers": len(answers)}
    print_result(options, document, [line])
    return 0


def _rows(side: RecordedOutcomes) -> Iterator[dict[str, Any]]:
    """Yield the answers to questions that have one, each with all accepted answers of its suite file."""
    from pytest_kbrel.suites import load_suite

    settings = dict(side.run.settings)
    try:
        limit = limit_value(settings["limit"]) if settings.get("limit") else None
        seed = FLAG_SEED.integer(settings["seed"]) if settings.get("seed") else None
    except ValueError as error:
        raise KbrelError(f"{side.run.path}: the recorded settings: {error}") from None
    # Of a case of a Python test no file states the accepted answers.
    judged = [
        case
        for case in side.cases
        if case.suite.endswith(SUITE_SUFFIX)
        and (probe := probe_named(case.probe))
        and probe.judged
    ]
    facts = {
        (suite, case.id, fact.id): fact
        for suite in sorted({case.suite for case in judged})
        for case in load_suite(Path(suite), limit=limit, seed=seed).cases
        for fact in case.facts
    }
    for case in judged:
        for row in case.table.rows:
            fact = facts.get((case.suite, case.id, row.fact_id))
            if fact is not None and fact.accepted and row.question:
                language = {"language": fact.language} if fact.language else {}
                yield {
                    "id": f"{case.id} {row.fact_id}",
                    "question": row.question,
                    "answers": list(fact.accepted),
                    "prediction": row.answer,
                    **language,
                    "label": "",
                }
