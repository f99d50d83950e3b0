"""The texts beside the facts of a built world: ``full.kb.yaml`` and SOURCES.md."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_kbrel.facts.sampling import first_drawn
from pytest_kbrel.records import BUCKETS, Bucket, Fact, Relation, record
from pytest_kbrel.resources import read_text

# Facts of a slice at least, if it is one of a single domain, and at most; a tolerance of .04 needs the former.
LEAST, MOST = 400, 600
# Independent answers that a slice needs to decide anything.
EFFECTIVE = 30
# So many relations get a slice of MONITOR, the suite at most 45 cases.
MONITORED = 20


@record
class Part:
    """The facts of a relation, the package they are from, and the buckets of those with a popularity, by id."""

    relation: Relation
    package: str
    facts: tuple[Fact, ...]
    buckets: Mapping[str, Bucket]

    def of(self, bucket: Bucket | None) -> list[Fact]:
        """Return the facts of a bucket; ``None`` are those whose popularity is not known."""
        return [fact for fact in self.facts if self.buckets.get(fact.id) == bucket]


def suite_text(parts: Sequence[Part]) -> str:
    """Return the suite over all facts: by relation, by domain and bucket, and of known and unseen knowledge."""
    large = sorted(parts, key=lambda part: -len(part.facts))
    deciding = [part.relation.id for part in large if _decides(part.facts)]
    text = read_text("world/full.kb.yaml.in")
    for probe, slices in (
        ("monitor", deciding[:MONITORED]),
        ("reliability", deciding),
        ("head_to_tail", _slices(parts)),
    ):
        text = text.replace(f"@{probe}@", ", ".join(slices))
    return text


def _slices(parts: Sequence[Part]) -> list[str]:
    """Return slices of a domain's bucket; domains with too few facts in it share one."""
    slices = []
    for bucket in BUCKETS:
        domains: dict[str, list[Fact]] = defaultdict(list)
        for part in parts:
            domains[part.relation.domain] += part.of(bucket)
        alone = [name for name, of in domains.items() if len(of) >= LEAST]
        alone = [name for name in alone if _decides(domains[name])]
        rest = [name for name, of in domains.items() if of and name not in alone]
        slices += [f"{domain}-{bucket}" for domain in alone]
        if _decides([fact for name in rest for fact in domains[name]]):
            slices.append(f"{'+'.join(rest)}-{bucket}")
    return slices


def _decides(facts: Sequence[Fact]) -> bool:
    """Return True if a sample of the facts has enough independent answers."""
    drawn = first_drawn(facts, MOST, 0, "object")
    sizes = Counter(fact.cluster("object") for fact in drawn).values()
    squares = sum(size**2 for size in sizes)
    return squares > 0 and len(drawn) ** 2 >= EFFECTIVE * squares


def sources_text(
    parts: Sequence[Part],
    packages: Mapping[str, Any],
    versions: Mapping[str, str],
    missing: Mapping[str, Sequence[str]],
) -> str:
    """Return the packages with version and licence, the relations with their figures, and attributions."""
    used = {name: packages[name] for name in packages if name in versions}
    lines = [
        "# Where these facts come from\n",
        "Written by `kbrel build world`. Currencies, seats of companies and official languages are as of these versions.\n",
        "| package | version | data | licence |\n|---|---|---|---|",
    ]
    for name, about in used.items():
        lines.append(
            f"| {name} | {versions[name]} | {about['data']} | {about['licence']} |"
        )
    for name, ids in missing.items():
        lines.append(f"| {name} | not there | without it: {', '.join(ids)} | |")
    lines.append(
        "\n| relation | Wikidata | what | package | facts | head / torso / tail / unknown | commonest answer | popularity, worth |"
        "\n|---|---|---|---|---|---|---|---|"
    )
    for part in parts:
        one, count = part.relation, len(part.facts)
        most = max(Counter(fact.object for fact in part.facts).values())
        sizes = " / ".join(f"{len(part.of(bucket)):,}" for bucket in (*BUCKETS, None))
        lines.append(
            f"| {one.id} | {one.id.split('.')[0]} | {one.label} | {part.package} | {count:,} | {sizes} | "
            f"{100 * most / count:.0f} % | {one.proxy}, {one.worth} |"
        )
    lines.append("\n## Attribution\n")
    lines += [
        f"- {one['attribution']}" for one in used.values() if "attribution" in one
    ]
    return "\n".join(lines) + "\n"
