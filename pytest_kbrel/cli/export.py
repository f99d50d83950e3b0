"""``kbrel export``: a recorded run as CSV, or as records of Every Eval Ever (schema 0.3)."""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from pytest_kbrel.cli.arguments import (
    RUN,
    Options,
    argument,
    command,
    output,
    print_result,
)
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.outputs import new_file
from pytest_kbrel.records import CaseResult, Fingerprint, Json, Outcome, Run

SCHEMA = "0.3.0"
_ABOUT = ("label", "rule", "cluster", "prompt_digest")
_TEXTS = (*_ABOUT[:2], "question", "expected", "answer", *_ABOUT[2:])
# A row's own score: 1 where it was answered as it should be.
_SCORE = "as_expected"
_MODEL_ID = re.compile(r"[\w.-]+/[\w.-]+")


@command(
    "export",
    "write a recorded run in a format that other tools read",
    RUN,
    argument(
        "--format",
        "eee: aggregate and instance records of Every Eval Ever; csv: a row for each fact",
        choices=("eee", "csv"),
        required=True,
    ),
    *output(
        "PATH",
        "the file (csv), or the folder in which data/kbrel/ORG/NAME/ is made (eee)",
    ),
    argument(
        "--model-id",
        "what the model is called on the Hub (eee)",
        metavar="ORG/NAME",
    ),
)
def _run(options: Options) -> int:
    from pytest_kbrel.session.outcomes import recorded_run

    run = recorded_run(options.report)
    cases = [case for case in run.cases if case.table.rows]
    if not cases:
        raise KbrelError(
            f"{options.report}: no case has an outcome; allowed: a run with cases that are not invalid"
        )
    if options.format == "csv":
        write_csv(cases, options.output, force=options.force)
        files = [options.output]
    elif _MODEL_ID.fullmatch(name := options.model_id or "none"):
        files = write_eee(run, cases, name, options.output, force=options.force)
    else:
        raise KbrelError(
            f"--model-id: found {name}; allowed: ORG/NAME, as the Hub calls the model"
        )
    print_result(options, {"files": files}, files)
    return 0


def write_csv(cases: list[CaseResult], output: Path, *, force: bool) -> None:
    """Write a row for each fact of each case; raises ``FileExistsError`` unless ``force``."""
    import csv

    with new_file(output, force=force) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("task", "id", "score", *_TEXTS))
        for case in cases:
            for row in case.table.rows:
                own = (case.nodeid, row.fact_id, f"{_score(row):g}")
                writer.writerow((*own, *(getattr(row, name) for name in _TEXTS)))


def _score(row: Outcome) -> float:
    from pytest_kbrel.gates.figures import good_share

    return good_share(row, row.expected)


def write_eee(
    run: Run,
    cases: list[CaseResult],
    model_id: str,
    output: Path,
    *,
    force: bool,
) -> list[Path]:
    """Write the two records below ``output`` and return their paths; the same run has the same names.

    Raises ``KbrelError`` where the time of the report is none.
    """
    from pytest_kbrel.serialization import replace_surrogates

    try:
        created = datetime.fromisoformat(run.created)
        if created.tzinfo is None:
            created = created.replace(tzinfo=UTC)
        stamp = str(int(created.timestamp()))
    except (ValueError, OverflowError):
        raise KbrelError(
            f"the report's 'created': found {run.created!r:.99}; allowed: a time such as "
            "2026-11-01T10:00:00+00:00"
        ) from None
    evaluation_id = f"kbrel/{model_id}/{stamp}"
    lines = [
        replace_surrogates(json.dumps(instance, ensure_ascii=False, allow_nan=False))
        + "\n"
        for case in cases
        for instance in _instances(case, evaluation_id, model_id)
    ]
    text = "".join(lines)
    digest = hashlib.sha256(text.encode()).hexdigest()
    name = str(uuid.UUID(bytes=bytes.fromhex(digest[:32]), version=4))
    folder = Path("data", "kbrel", *model_id.split("/"))
    samples = folder / f"{name}_samples.jsonl"
    record = {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation_id,
        "evaluation_timestamp": run.created,
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": "pytest-kbrel",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "pytest-kbrel", "version": run.kbrel_version},
        "model_info": _model_info(run.model, model_id),
        "evaluation_results": [*_metrics(run), *map(_own_score, cases)],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": samples.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": digest,
            "total_rows": len(lines),
        },
    }
    paths = [output / folder / f"{name}.json", output / samples]
    aggregate = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    with (
        new_file(paths[0], force=force) as first,
        new_file(paths[1], force=force) as second,
    ):
        first.write(aggregate)
        first.flush()
        second.write(text)
    return paths


def _model_info(model: Fingerprint | None, model_id: str) -> Json:
    details = {
        key: getattr(model, key)
        for key in ("spec", "weights_digest", "dtype", "quantisation")
        if getattr(model, key, "")
    }
    return {
        "name": model_id.partition("/")[2],
        "id": model_id,
        "inference_engine": {
            "name": model.backend if model else "unknown",
            "version": model.backend_version if model else "unknown",
        },
        "additional_details": {
            "deployment_type": "unknown",
            "model_availability": "unknown",
            **details,
        },
    }


def _metrics(run: Run) -> Iterator[Json]:
    from pytest_kbrel.catalogue.metrics import ALL_METRICS

    for case in run.cases:
        for figure in case.metrics:
            if figure.value is None:
                continue
            config: Json = {"lower_is_better": figure.better == "lower"}
            if (metric := ALL_METRICS.get(figure.name)) is not None:
                config |= {
                    "score_type": "continuous",
                    "min_score": metric.low,
                    "max_score": "Infinity" if math.isinf(metric.high) else metric.high,
                }
            details: Json = {"score": figure.value}
            if figure.low is not None:
                interval = {
                    "lower": figure.low,
                    "upper": figure.high,
                    "confidence_level": 0.95,
                }
                details["uncertainty"] = {
                    "confidence_interval": interval,
                    "num_samples": figure.n,
                }
            yield _result(case.nodeid, figure.name, config, details)


def _own_score(case: CaseResult) -> Json:
    scores = [_score(row) for row in case.table.rows]
    config = {
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0.0,
        "max_score": 1.0,
    }
    return _result(case.nodeid, _SCORE, config, {"score": sum(scores) / len(scores)})


def _result(case: str, metric: str, config: Json, details: Json) -> Json:
    return {
        "evaluation_result_id": f"{case}:{metric}",
        "evaluation_name": case,
        "source_data": {
            "dataset_name": case.partition("::")[0],
            "source_type": "other",
        },
        "metric_config": {"metric_id": metric, "metric_name": metric, **config},
        "score_details": details,
    }


def _instances(case: CaseResult, evaluation_id: str, model_id: str) -> Iterator[Json]:
    for row in case.table.rows:
        score = _score(row)
        reference = [row.expected] if row.expected else []
        metadata = {name: getattr(row, name) for name in _ABOUT}
        yield {
            "schema_version": SCHEMA,
            "evaluation_id": evaluation_id,
            "model_id": model_id,
            "evaluation_name": case.nodeid,
            "evaluation_result_id": f"{case.nodeid}:{_SCORE}",
            "sample_id": row.fact_id,
            "sample_hash": hashlib.sha256(
                "".join((row.question, *reference)).encode()
            ).hexdigest(),
            "interaction_type": "single_turn",
            "input": {"raw": row.question, "reference": reference},
            "output": {"raw": [reply.answer for reply in row.replies]},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": row.answer,
                    "extraction_method": "custom",
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": score, "is_correct": score == 1},
            "metadata": {key: value for key, value in metadata.items() if value},
        }
