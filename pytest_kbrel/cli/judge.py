"""``kbrel judge``: verdicts on the predictions of any model, by the rules that the suites use."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.cli.arguments import (
    Options,
    argument,
    command,
    output,
    print_result,
)
from pytest_kbrel.cli.labels import agreement, agreement_lines
from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.facts.located import describe, json_records
from pytest_kbrel.outputs import new_file
from pytest_kbrel.records import LANGUAGES, Json, Label, Pairs, base_language

if TYPE_CHECKING:
    from pytest_kbrel.judges.rules import Judged

_FORM = (
    'a predictions file has one JSON object a line: {"id": 7, "question": "What is the capital of Peru?", '
    '"answers": ["Lima"], "prediction": "It is Lima."}'
)
_HUMAN = dict.fromkeys(("1", "true", "correct"), True)
_HUMAN |= dict.fromkeys(("0", "false", "wrong", "incorrect"), False)
_LABELS: Sequence[Label] = ("correct", "wrong", "uninformative")


@command(
    "judge",
    "say of each prediction in a file whether it is correct, wrong or uninformative",
    argument("path", "the predictions", Path, metavar="IN.jsonl"),
    *output("OUT.jsonl", "the same lines with their verdicts"),
    argument(
        "--uninformative",
        "YAML with further patterns of uninformative answers",
        Path,
        metavar="FILE",
    ),
    argument(
        "--human",
        "print how far the verdicts agree with a human's under this key (0 or 1)",
        metavar="KEY",
    ),
    epilog='each line: {"id", "question", "answers": [...], "prediction"}, and "language" ("de") where '
    "that is not English; other keys are kept",
)
def _run(options: Options) -> int:
    from pytest_kbrel.suites.parse import read_uninformative

    key = options.human
    extra = read_uninformative(options.uninformative) if options.uninformative else ()
    counts: Counter[str] = Counter()
    unsupported: Counter[str] = Counter()
    pairs: Counter[tuple[bool, bool]] = Counter()

    def judged_row(row: Json) -> tuple[Json, Judged]:
        verdict = _judged(row, extra)
        if key:
            pairs[_human(row, key), verdict.label == "correct"] += 1
        return row, verdict

    with new_file(options.output, force=options.force) as stream:
        for _, (row, verdict) in json_records(options.path, _FORM, judged_row):
            counts[verdict.label] += 1
            if (language := base_language(row.get("language", ""))) not in LANGUAGES:
                unsupported[language] += 1
            judged = {**row, "verdict": verdict.label, "rule": verdict.rule}
            stream.write(json.dumps(judged, ensure_ascii=False, allow_nan=False) + "\n")
        if not counts:
            raise SuiteError(f"no predictions found; {_FORM}", options.path, 1)
    totals = ", ".join(f"{counts[label]} {label}" for label in _LABELS)
    shares = agreement(pairs)
    document = {
        "output": options.output,
        "predictions": counts.total(),
        "verdicts": {label: counts[label] for label in _LABELS},
        "languages_without_rules": dict(unsupported),
        "human": shares if key else None,
    }
    lines = [
        f"{counts.total()} predictions: {totals}; written to {options.output}",
        *(
            f"{number} of them in {language!r}, for which there are no rules: judged by those for English; "
            f"known are {', '.join(LANGUAGES)}"
            for language, number in unsupported.items()
        ),
    ]
    print_result(options, document, [*lines, *agreement_lines(shares)])
    return 0


def _judged(row: Json, extra: Pairs) -> Judged:
    """Judge one row; raises ``ValueError`` where it is no prediction."""
    from pytest_kbrel.facts.files import check_key
    from pytest_kbrel.judges.rules import judge

    for key in ("question", "answers", "prediction"):
        if key not in row:
            keys = ", ".join(row) or "nothing"
            raise ValueError(
                f"the key {key!r} is missing; found: {keys}{nearest(key, row)}; {_FORM}"
            )
    for key in ("verdict", "rule"):
        if key in row:
            raise ValueError(
                f"the key {key!r} is there already; it is what this command adds"
            )
    language = row.get("language", "")
    check_key("language", language)
    answers = row["answers"]
    if not isinstance(answers, list):
        raise ValueError(
            f"'answers' must be a list of texts, found {describe(answers)}"
        )
    accepted = [_text("'answers'", answer, "texts or numbers") for answer in answers]
    if any(not answer.strip() for answer in accepted):
        raise ValueError("each of 'answers' must say something, found a blank one")
    question = _text("'question'", row["question"], "text")
    prediction = (
        ""
        if row["prediction"] is None
        else _text("'prediction'", row["prediction"], "text")
    )
    within = row.get("answer_range")
    if within is not None:
        check_key("answer_range", within)
    if within is not None and not accepted:
        raise ValueError(
            "'answer_range' is for questions with an answer; found no 'answers' beside it"
        )
    return judge(
        prediction, accepted, question, extra=extra, language=language, within=within
    )


def _text(what: str, value: object, allowed: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{what} must be {allowed}, found {describe(value)}")


def _human(row: Json, key: str) -> bool:
    if key not in row:
        raise ValueError(
            f"the key {key!r} with the human's verdict is missing{nearest(key, row)}"
        )
    # Tables that other programs write have 1.0 for 1.
    verdict = _HUMAN.get(str(row[key]).lower().removesuffix(".0"))
    if verdict is None:
        raise ValueError(
            f"{key!r} must be 0 or 1, correct or wrong, found {describe(row[key])}"
        )
    return verdict
