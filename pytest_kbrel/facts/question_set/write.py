"""A question set as files: ``facts.jsonl``, ``relations.yaml`` and a manifest of how it came about."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel.facts.question_set.templates import Template
from pytest_kbrel.facts.serialize import fact_line, relations_text
from pytest_kbrel.records import Bucket, Fact, Relation


def fact_of(
    template: Template, bucket: Bucket, subject: str, answers: Sequence[str], popularity: float, dataset: str
) -> Fact:
    """Return one question of the set as a fact; the first of ``answers`` is its object."""
    return Fact(
        id=f"{template.relation}:{subject}",
        relation=template.relation,
        subject=subject,
        object=answers[0],
        aliases=tuple(answers[1:]),
        popularity=popularity,
        question=template.question.replace("[X]", subject),
        answer_type=template.answer_type,
        dataset=dataset,
        bucket=bucket,
    )


def relation_of(template: Template, rows: int) -> Relation:
    """Return a template as a relation; its popularity is the number of its rows in the dump."""
    return Relation(
        id=template.relation,
        label=template.label,
        domain=template.domain,
        frames=(template.question,),
        answer_type=template.answer_type,
        popularity=float(rows),
    )


def write_set(folder: Path, facts: Iterable[Fact], relations: Iterable[Relation], manifest: Any) -> None:
    """Write the three files of a set into ``folder``, which is made; ``manifest`` is a record."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "facts.jsonl").open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(fact_line(fact) for fact in facts)
    _write(folder / "relations.yaml", relations_text(relations))
    _write(
        folder / "manifest.json",
        json.dumps(dataclasses.asdict(manifest), indent=1, ensure_ascii=False) + "\n",
    )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
