"""``kbrel build world``: facts of all relations, their sources, and the suite ``full.kb.yaml``."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import KbrelError, MissingExtraError, SuiteError
from pytest_kbrel.facts.files import fact_line, relations_text
from pytest_kbrel.facts.readers.base import delimiter_of, table
from pytest_kbrel.facts.sampling import fact_buckets, first_drawn
from pytest_kbrel.outputs import write_text
from pytest_kbrel.records import BUCKETS, Fact, Relation, record
from pytest_kbrel.resources import read_yaml
from pytest_kbrel.world.names import fold, has_words, other_names
from pytest_kbrel.world.suite import EFFECTIVE, Part, sources_text, suite_text

# Facts of a relation and bucket in a small world.
SHARE = 20
# The most that one answer may have of a relation's facts.
COMMONEST = 0.3
# How far a table of views must cover a relation's facts to take the place of its proxy.
COVERED = 0.5


@record
class Built:
    """What was made: parts by relation, how many facts a rule left out, relations of absent packages, and the digest."""

    parts: tuple[Part, ...]
    left_out: Mapping[str, int]
    missing: Mapping[str, Sequence[str]]
    digest: str


def build_world(
    output: Path,
    *,
    small: bool = False,
    views: Path | None = None,
    npm: Path | None = None,
) -> Built:
    """Write facts, relations, sources and suite into a folder that is new or empty.

    Packages that are none of Python's are read from the folder ``npm``, or left out. Raises
    ``MissingExtraError`` without one of Python's, ``KbrelError`` on a version that was not tried and
    on a folder with files, ``SuiteError`` on a table of views that does not fit.
    """
    if output.is_file() or (output.is_dir() and any(output.iterdir())):
        raise KbrelError(
            f"{output}: found a file, or files in it; allowed: a new or empty folder"
        )
    packages, known = (
        read_yaml("world/packages.yaml"),
        read_yaml("world/relations.yaml"),
    )
    versions, proxies = dict(_versions(packages, npm)), known["proxies"]
    missing: dict[str, list[str]] = defaultdict(list)
    rows = {}
    for name, row in known["relations"].items():
        if row["package"] in versions:
            rows[name] = {**row, **packages[row["package"]]}
        else:
            missing[row["package"]].append(name)
    left_out: Counter[str] = Counter()
    facts = _facts(rows, npm, left_out)
    relations = {
        name: Relation(
            id=name,
            label=rows[name]["label"],
            domain=rows[name]["domain"],
            answer_type=rows[name].get("answer_type", ""),
            proxy=proxies[rows[name]["proxy"]]["name"],
            worth=proxies[rows[name]["proxy"]]["worth"],
            lead=rows[name]["lead"],
            frames=tuple(rows[name]["frames"]),
        )
        for name in facts
    }
    if views:
        _join_views(facts, relations, views, left_out)
    parts = tuple(
        _part(relation, facts[name], rows[name]["package"], small)
        for name, relation in relations.items()
    )
    text = "".join(fact_line(fact) for part in parts for fact in part.facts)
    for file, content in (
        ("facts.jsonl", text),
        ("relations.yaml", relations_text(relations.values())),
        ("SOURCES.md", sources_text(parts, packages, versions, missing)),
        ("full.kb.yaml", suite_text(parts)),
    ):
        write_text(output / file, content, force=False)
    return Built(
        parts=parts,
        left_out={why: count for why, count in left_out.items() if why},
        missing=missing,
        digest=hashlib.sha256(text.encode()).hexdigest(),
    )


def _versions(
    packages: Mapping[str, Any], npm: Path | None
) -> Iterator[tuple[str, str]]:
    for name, about in packages.items():
        if about.get("npm"):
            file = npm / name / "package.json" if npm else None
            if not file or not file.is_file():
                continue
            installed = json.loads(file.read_text(encoding="utf-8"))["version"]
        else:
            try:
                installed = version(name)
            except PackageNotFoundError:
                raise MissingExtraError(name, "world", "kbrel build world") from None
        if installed != about["version"]:
            raise KbrelError(
                f"{name}: found version {installed}; allowed: {about['version']}, which was tried"
            )
        yield name, installed


def _facts(
    rows: Mapping[str, Any], npm: Path | None, left_out: Counter[str]
) -> dict[str, list[Fact]]:
    # Here, since it needs the packages.
    from pytest_kbrel.world import sources as places
    from pytest_kbrel.world import topics

    functions = {**vars(places), **vars(topics)}
    sources = places.Sources(npm or Path())
    used = dict.fromkeys(row["source"] for row in rows.values())
    records = {name: list(functions[name](sources)) for name in used}
    pairs: set[tuple[str, str, str]] = set()
    facts = {}
    for name, row in rows.items():
        by_subject: dict[str, list[Fact]] = defaultdict(list)
        fits = re.compile(row.get("subject_is", ".+")).fullmatch
        for one in records[row["source"]]:
            subject, *_ = _texts(one.get(row["subject"])) or [""]
            answers = _texts(one.get(row["object"]))
            if answers and fits(subject) and str(one["id"]) not in row.get("not", ()):
                known = (
                    one["popularity"] if "popularity" in one else sources.words(subject)
                )
                fact = Fact(
                    id=f"{name}-{one['id']}",
                    relation=name,
                    subject=subject,
                    object=answers[0],
                    aliases=other_names(answers[0], answers[1:]),
                    popularity=known and round(known, 3),
                    source=row["data"],
                    licence=row["licence"],
                )
                by_subject[_key(subject)].append(fact)
        kept = []
        for subject, same in by_subject.items():
            fact = min(same, key=_rank)
            pair = (name.split(".")[0], subject, _key(fact.object))
            why = ""
            if len({_key(other.object) for other in same}) > 1:
                why = "subjects with several answers"
            elif _gives_away(fact, row.get("apart", "")):
                why = "subjects that give the answer away"
            elif pair in pairs:
                why = "facts of another relation"
            else:
                pairs.add(pair)
                kept.append(fact)
            left_out[why] += 1
        balanced = _balanced(kept)
        left_out["facts with the commonest answer"] += len(kept) - len(balanced)
        if balanced:
            facts[name] = sorted(balanced, key=_rank)
    return facts


def _texts(value: Any) -> list[str]:
    """Return what a field has, one or a list, with single spaces."""
    texts = value if isinstance(value, (list, tuple)) else [value or ""]
    return [" ".join(text.split()) for text in map(str, texts) if text.strip()]


def _rank(fact: Fact) -> tuple[float, str]:
    return -(fact.popularity or 0.0), fact.id


def _key(text: str | None) -> str:
    return fold(text or "").casefold()


def _gives_away(fact: Fact, apart: str) -> bool:
    answer, subject = _key(fact.object), _key(fact.subject)
    if has_words(subject, answer) or has_words(answer, subject):
        return True
    if apart == "stems":
        pairs = product(answer.split(), subject.split())
        return any(
            one.startswith(other[:4]) or other.startswith(one[:4])
            for one, other in pairs
            if min(len(one), len(other)) > 2
        )
    one, other = (text.strip("+.").replace(" ", "") for text in (answer, subject))
    return apart == "letters" and (one in other or other in one)


def _balanced(facts: Sequence[Fact]) -> list[Fact]:
    """Return so many facts of each answer, drawn by id, that none has more than its share."""
    by_answer: dict[str | None, list[Fact]] = defaultdict(list)
    for fact in facts:
        by_answer[fact.object].append(fact)
    counts = [len(of) for of in by_answer.values()]
    most = max(counts, default=0)
    while most > 1 and most > COMMONEST * sum(min(most, n) for n in counts):
        most -= 1
    return [
        fact for of in by_answer.values() for fact in first_drawn(of, most, 0, "fact")
    ]


def _part(relation: Relation, facts: Sequence[Fact], package: str, small: bool) -> Part:
    known = [fact for fact in facts if fact.popularity is not None]
    buckets = fact_buckets(known, [(f.subject, f.popularity or 0.0) for f in known])
    part = Part(relation=relation, package=package, facts=tuple(facts), buckets=buckets)
    if not small:
        return part
    drawn: list[Fact] = []
    for bucket in (*BUCKETS, None):
        of = part.of(bucket)
        # The bucket of the whole: a share of it has others.
        named = [replace(f, bucket=bucket) for f in of] if bucket else of
        drawn += first_drawn(named, SHARE, 0, "object")
    return replace(part, facts=tuple(drawn))


def _join_views(
    facts: dict[str, list[Fact]],
    relations: dict[str, Relation],
    path: Path,
    left_out: Counter[str],
) -> None:
    """Put page views in the place of a proxy in each relation of which a table has at least half the facts.

    Its other facts are left out: views and a proxy cannot be compared. So many must be left as a suite can ask about.
    """
    views = _read_views(path, {fact.id for of in facts.values() for fact in of})
    any_joined = False
    for name, of in facts.items():
        joined = []
        for fact in of:
            count = views.get(fact.id, views.get(_key(fact.subject)))
            joined += [] if count is None else [replace(fact, popularity=count)]
        any_joined |= bool(joined)
        if len(joined) >= max(COVERED * len(of), EFFECTIVE):
            left_out["facts without page views"] += len(of) - len(joined)
            facts[name] = sorted(joined, key=_rank)
            relations[name] = replace(relations[name], proxy="page views", worth="good")
        elif joined:
            why = f"page views of {name}: of under half of its facts, or of under {EFFECTIVE}"
            left_out[why] += len(joined)
    if not any_joined:
        raise SuiteError(
            "found no subject of these facts; allowed: names of subjects, or ids of facts.jsonl",
            path,
        )


def _read_views(path: Path, ids: set[str]) -> dict[str, float]:
    """Return page views by the id of a fact, or the name of a subject."""
    rows, views = table(path, delimiter_of(path)), dict[str, float]()
    _, header = next(rows)
    heads = [*header] if isinstance(header, dict) else []
    if not {"views"} < {*heads} & {"views", "id", "subject"}:
        message = (
            f"found the columns {', '.join(heads)}; allowed: views, and id or subject"
        )
        raise SuiteError(message, path, 1)
    for line, row in rows:
        if isinstance(row, SuiteError):
            raise row
        name = row.get("id", "")
        if name and name not in ids:
            message = f"found the id {name!r}; allowed: ids of these facts (facts.jsonl), or subject"
            raise SuiteError(message, path, line)
        try:
            count = float(row.get("views", ""))
        except ValueError:
            count = -1.0
        if not 0 <= count < 1e300:
            message = f"found views {row.get('views')!r}; allowed: a number from 0"
            raise SuiteError(message, path, line)
        views[name or _key(row.get("subject"))] = count
    return views
