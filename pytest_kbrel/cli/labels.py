"""``kbrel labels``: answers of a run for a human to label, and how often its judge agrees with the labels."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.bounds import FLAG_SEED, LIMIT, limit_value
from pytest_kbrel.catalogue.probes import probe_named
from pytest_kbrel.cli.arguments import (
    Options,
    argument,
    command,
    output,
    print_result,
)
from pytest_kbrel.errors import KbrelError, SuiteError
from pytest_kbrel.facts.located import describe, json_records
from pytest_kbrel.outputs import new_file
from pytest_kbrel.words import SUITE_SUFFIX

if TYPE_CHECKING:
    from pytest_kbrel.records import Json, Run

_DEFAULT = 150
_LABELS = ("right", "wrong", "missing")
_VERDICTS = ("correct", "wrong", "uninformative", "outdated")
# Whether they are of answers that the human calls right.
_SHARES = {
    "sensitivity": (True, "right answers called right"),
    "specificity": (False, "others not called right"),
}
_FORM = (
    'a labelled file has one JSON object a line: {"question": "What is the capital of Peru?", "prediction": '
    '"It is Lima.", "verdict": "correct", "label": "right"}; kbrel labels RUN --output FILE writes it'
)


@command(
    "labels",
    "draw answers of a recorded run for a human to label, and say how often its judge errs",
    argument(
        "source",
        "the folder of a run's reports to draw from, or the labelled file",
        Path,
        metavar="RUN|FILE",
    ),
    *output(
        "OUT.jsonl",
        "the answers to label, one a line (needed with a RUN)",
        required=False,
    ),
    argument(
        "--number",
        f"how many answers to draw (default: {_DEFAULT})",
        LIMIT,
        metavar="N",
        default=_DEFAULT,
    ),
    epilog='write "right", "wrong" or "missing" as the label of each line, and call kbrel labels with the '
    "file; call it where pytest was called, for the suites are read again",
)
def _run(options: Options) -> int:
    from pytest_kbrel.session.outcomes import recorded_run

    if options.source.is_file():
        return _report(options)
    if options.output is None:
        raise KbrelError(
            "--output: found nothing; allowed: the file for the answers to label"
        )
    # A judge says nothing new of an answer that it has judged.
    answers = {
        json.dumps([row[key] for key in ("question", "answers", "prediction")]): row
        for row in _rows(recorded_run(options.source), options.source)
    }
    if not answers:
        allowed = "a run of suites with Head-to-Tail or Reliable KB, and their files as they were"
        raise KbrelError(
            f"{options.source}: no answer of it is for a judge; allowed: {allowed}"
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


def _report(options: Options) -> int:
    """Print the sensitivity and specificity of the verdicts in a labelled file."""
    records = json_records(options.source, _FORM, _labelled)
    shares = agreement(Counter(pair for _, pair in records))
    if missing := _SHARES.keys() - shares.keys():
        kind = "right" if "sensitivity" in missing else "wrong"
        fault = f"no answer is labelled {kind}; allowed: labels of either kind"
        raise SuiteError(fault, options.source, 1)
    print_result(options, shares, agreement_lines(shares))
    return 0


def agreement(pairs: Counter[tuple[bool, bool]]) -> dict[str, dict[str, float]]:
    """Return sensitivity and specificity with their intervals, where there are answers to have them of.

    ``pairs`` are whether a human calls an answer right, and whether the judge does.
    """
    from pytest_kbrel.stats import wilson

    shares = {}
    for name, (kind, _) in _SHARES.items():
        right, n = pairs[kind, kind], pairs[kind, True] + pairs[kind, False]
        if n:
            low, high = wilson(right, n)
            shares[name] = {"value": right / n, "low": low, "high": high, "n": n}
    return shares


def agreement_lines(shares: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield a line for each share of :func:`agreement`."""
    for name, share in shares.items():
        interval = f"[{share['low']:.3f}, {share['high']:.3f}]"
        about = _SHARES[name][1]
        yield f"{name} {share['value']:.3f} {interval}: {about}, {share['n']} labels"


def _labelled(row: Json) -> tuple[bool, bool]:
    """Return whether human and judge call an answer right; raises ``ValueError`` for a wrong row."""
    for key, allowed in (("label", _LABELS), ("verdict", _VERDICTS)):
        if row.get(key) not in allowed:
            names, value = ", ".join(allowed), describe(row.get(key))
            raise ValueError(f"{key!r} must be {names}, found {value}")
    return row["label"] == "right", row["verdict"] == "correct"


def _rows(run: Run, path: Path) -> Iterator[Json]:
    """Yield the answers to questions that have one, each with all accepted answers of its suite file."""
    from pytest_kbrel.suites import load_suite

    settings = dict(run.settings)
    try:
        limit = limit_value(settings["limit"]) if settings.get("limit") else None
        seed = FLAG_SEED.integer(settings["seed"]) if settings.get("seed") else None
    except ValueError as error:
        raise KbrelError(f"{path}: the recorded settings: {error}") from None
    # Of a case of a Python test no file states the accepted answers.
    judged = [
        case
        for case in run.cases
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
                    "verdict": row.label,
                    "label": "",
                }
