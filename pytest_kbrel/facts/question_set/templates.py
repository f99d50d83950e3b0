"""The templates of a question set: which relations of a dump are asked about, and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

from pytest_kbrel.bounds import CAP, shown
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.node import Entry
from pytest_kbrel.facts.located.yaml import read_document
from pytest_kbrel.facts.relations import NAME
from pytest_kbrel.records import ANSWER_TYPES, AnswerType, record

_KEYS = ("question", "label", "domain", "from", "cap", "answer_type")


@record
class Template:
    """One relation that is asked about.

    ``question`` has ``[X]`` for the subject, once. ``source`` is what the dump calls the relation: a value of
    its relation column, or the column of a table. ``cap`` is the most questions a bucket may have of it;
    ``None``: as for all.
    """

    relation: str
    question: str
    label: str
    domain: str
    source: str
    cap: int | None = None
    answer_type: Literal["", AnswerType] = ""


def read_templates(path: Path) -> tuple[Template, ...]:
    """Read a YAML mapping ``relation id -> {question, label, domain, from, cap, answer_type}``.

    Only ``question`` is needed: ``label`` and ``from`` are otherwise the id, ``domain`` is ``open``. Raises
    ``SuiteError`` with the line on the first mistake.
    """
    root = read_document(path)
    entries = root.mapping("a file of templates")
    if not entries:
        raise root.wrong("a file of templates", "a mapping with at least one relation")
    templates = [_template(name, entry) for name, entry in entries.items()]
    first: dict[str, str] = {}
    for template in templates:
        other = first.setdefault(template.source, template.relation)
        if other != template.relation:
            raise SuiteError(
                f"{other} and {template.relation} are both from {template.source!r}; "
                "allowed: one template for each relation of the dump",
                path,
                entries[template.relation].line,
            )
    return tuple(templates)


def _template(name: str, entry: Entry) -> Template:
    if not NAME.fullmatch(name):
        raise entry.error(
            f"a relation's id must be ASCII letters, digits, _ and ., found {shown(name)} "
            "(what the dump calls it stands under 'from')"
        )
    where = f"template {name}"
    keys = entry.node.keys(where, _KEYS, required=("question",))
    question = keys["question"].node.text("question")
    if question.count("[X]") != 1:
        raise keys["question"].error(
            f"question must contain [X] exactly once, found {question.count('[X]')} times in {question!r}"
        )
    domain = keys["domain"].node.text("domain") if "domain" in keys else "open"
    if not NAME.fullmatch(domain):
        raise keys["domain"].node.wrong("domain", "ASCII letters, digits, _ and .")
    kind = keys["answer_type"].node.choice("answer_type", ANSWER_TYPES) if "answer_type" in keys else ""
    return Template(
        relation=name,
        question=question,
        label=keys["label"].node.text("label") if "label" in keys else name,
        domain=domain,
        source=keys["from"].node.text("from") if "from" in keys else name,
        cap=keys["cap"].node.integer(f"cap of {name}", CAP) if "cap" in keys else None,
        answer_type=cast(AnswerType, kind) if kind else "",
    )
