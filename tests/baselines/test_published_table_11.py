"""Table 11 of Head-to-Tail (arXiv 2308.10168 v1) as it ships, figure by figure, and what holds among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.baselines import PublishedCase, read_baseline
from pytest_kbrel.records import BUCKETS
from tests.golden import figures_of
from tests.golden.publish import slug

DOMAINS = ("movie", "book", "academics", "open")
NAMES = {
    "m": "missing",
    **{
        f"a_{short}": f"accuracy{name}"
        for short, name in (("lm", ""), ("em", "_em"), ("f1", "_f1"))
    },
    **{
        f"h_{short}": f"hallucination{name}"
        for short, name in (("lm", ""), ("em", "_em"), ("f1", "_f1"))
    },
    **{"a_rl": "accuracy_rouge_l", "h_rl": "hallucination_rouge_l"},
}
MODELS = sorted({row["model"] for row, _ in figures_of("head_to_tail.csv", 11)})
# Half of the last printed decimal, a share.
HALF = 0.0005

Cases = dict[str, dict[str, float]]


def place(domain: str, bucket: str) -> str:
    parts = [part for part in (domain, bucket) if part != "all"]
    return f"head_to_tail[{'-'.join(parts) or 'overall'}]"


def shipped(
    model: str, root: Path
) -> tuple[Cases, dict[str, int], dict[str, tuple[str, ...]]]:
    """Return a model's figures, questions and members by case."""
    result = read_baseline(f"published/head-to-tail/{slug(model)}", root).cases.values()
    cases = [case for case in result if isinstance(case, PublishedCase)]
    figures = {
        case.id: {figure.name: figure.value for figure in case.figures}
        for case in cases
    }
    asked = {case.id: case.questions for case in cases}
    return figures, asked, {case.id: case.members for case in cases}


@pytest.mark.parametrize("model", MODELS)
def test_buckets_of_one_size_make_the_figures_over_all(
    model: str, tmp_path: Path
) -> None:
    cases, questions, members = shipped(model, tmp_path)
    for domain in (*DOMAINS, "all"):
        whole = cases[place(domain, "all")]
        parts = [cases[place(domain, bucket)] for bucket in BUCKETS]
        assert questions[place(domain, "all")] == sum(
            questions[place(domain, bucket)] for bucket in BUCKETS
        )
        for name in NAMES.values():
            if name in parts[0] and name in whole:
                mean = sum(part[name] for part in parts) / len(parts)
                # What the paper does not print of a domain is what its two other figures leave.
                rounded = (
                    4 * HALF if name == "missing" and domain != "all" else 2 * HALF
                )
                assert whole[name] == pytest.approx(mean, abs=rounded + 1e-9), (
                    domain,
                    name,
                )
    for domain in DOMAINS:
        assert members[place(domain, "all")] == tuple(
            place(domain, bucket) for bucket in BUCKETS
        )
