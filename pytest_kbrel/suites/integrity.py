"""The limits of integrity as a suite file states them, for the whole suite or for a probe."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pytest_kbrel.bounds import SHARE_OR_NONE
from pytest_kbrel.facts.located.node import Entry, Node
from pytest_kbrel.records import Integrity

# What each limit says, in the order of the record; the JSON Schema follows it.
LIMITS: Mapping[str, str] = {
    "answered": "Least share of the facts with an answer that is not empty.",
    "empty": "Largest share of the answers that may be empty.",
    "truncated": "Largest share of the answers that may be cut short at max_new_tokens.",
    "repeated": "Largest share of the facts that may get one and the same wrong answer.",
    "errored": "Largest share of the facts that may be without usable response; they are in no figure.",
    "unparsable": "Largest share of a judge's replies that may not be readable.",
    "unread": "Largest share of the replies to multiple-choice questions that may pick no option.",
    "below_random": "Whether answers may be right less often than random objects of the relation would be.",
    "constant": "Whether MONITOR's probabilities may all be equal.",
    "anchor_prob": "Least mean probability of the right answers behind MONITOR's prompt that states them.",
    "first_token": "Least share of MONITOR's right answers whose scored first token the model wrote first.",
}
CHOICES = ("invalid", "allowed")


def read_integrity(entries: Mapping[str, Entry], where: str, general: Integrity) -> Integrity:
    """Return the limits under ``integrity`` of ``entries``, those that it does not state from ``general``.

    Raises ``SuiteError`` on an unknown limit, and on what is no share (0..1) or none of :data:`CHOICES`.
    """
    if "integrity" not in entries:
        return general
    what = f"integrity of {where}"
    written = entries["integrity"].node.keys(what, tuple(LIMITS))
    stated: dict[str, Any] = {name: _limit(name, entry.node, what) for name, entry in written.items()}
    return dataclasses.replace(general, **stated)


def _limit(name: str, node: Node, where: str) -> float | str:
    what = f"{name} in {where}"
    if isinstance(getattr(Integrity(), name), str):
        return node.choice(what, CHOICES)
    return float(node.number(what, f"a share, {SHARE_OR_NONE}", SHARE_OR_NONE))
