"""What is asked without a wording of the suite's own: a byte that changes, and no baseline is comparable."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest

from pytest_kbrel.probes import run_case
from pytest_kbrel.records import (
    Case,
    GenerateRequest,
    HeadToTailSettings,
    MonitorSettings,
    ReliabilitySettings,
    Shot,
    changed_digest,
)
from tests.probes.conftest import FRANCE, Oracle, make_case
from tests.probes.monitor.test_monitor import generated

FACT = dataclasses.replace(FRANCE, negatives=("Rome", "Oslo", "Bern", "Lima"))
EXAMPLES = tuple(
    Shot(question=f"What is the capital of {land}?", answer=city)
    for land, city in (
        ("Peru", "Lima"),
        ("Chile", "Santiago"),
        ("Egypt", None),
        ("Japan", None),
    )
)

ALL = {"negatives": 2, "formats": "all", "study": "full"}


def case_of(settings, *shots: Shot) -> Case:
    case = make_case(settings, FACT)
    relation = dataclasses.replace(
        case.relations[0], statements=("[X] is ruled from [Y].", "[Y] rules [X].")
    )
    return dataclasses.replace(
        case, relations=(relation,), shots=((FACT.id, shots),) if shots else ()
    )


# settings, examples, sha256 of all requests, digest of the settings that are not the default ones
ASKED = [
    (HeadToTailSettings(), (), "99d7788107076136", "44136fa3"),
    (HeadToTailSettings(prompt="zero-shot"), (), "4b8d7b5e4d669a87", "662591c9"),
    (HeadToTailSettings(prompt="concise"), (), "df76fa848a59e1ec", "ab1853c5"),
    (
        HeadToTailSettings(prompt="in-domain"),
        EXAMPLES[:1],
        "b358e5fb6b7babee",
        "62d34adb",
    ),
    (MonitorSettings(**ALL), (), "e7e20239c944bff2", "8d799681"),
    (MonitorSettings(variant="published", **ALL), (), "8c9c8697aff0e4fb", "197e1b07"),
    (
        ReliabilitySettings(choices=3, prompt="zero-shot"),
        (),
        "1345fd3fdc4f4777",
        "aea90e51",
    ),
    (ReliabilitySettings(choices=3), (), "11b5919bfce6ce20", "3c4ced44"),
    (
        ReliabilitySettings(choices=3, prompt="four-shot-2"),
        EXAMPLES,
        "09d4efcf6002cff6",
        "b24ef684",
    ),
]


@pytest.mark.parametrize(("settings", "shots", "requests", "changed"), ASKED)
def test_the_papers_wording_stays_what_it_was_byte_for_byte(
    settings, shots, requests, changed
):
    oracle = Oracle(say=lambda request: generated("Paris", ("P", 0.5, 0.5)))
    case = case_of(settings, *shots)
    run_case(case, oracle, oracle.keep)
    digest = hashlib.sha256()
    for request in (one for asked in oracle.rounds for one in asked):
        digest.update(f"{request.prompt}\0{request.system}\0{request.turns}\0".encode())
        if isinstance(request, GenerateRequest):
            digest.update(
                f"{request.max_new_tokens}\0{request.stop}\0{request.num_beams}\n".encode()
            )
        else:
            digest.update(f"{request.continuation}\n".encode())
    assert (digest.hexdigest()[:16], changed_digest(case)) == (requests, changed)
