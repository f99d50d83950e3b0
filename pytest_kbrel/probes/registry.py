"""What asks and measures for each probe: the code behind the records of ``catalogue/probes.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_kbrel.probes import head_to_tail, monitor, reliability
from pytest_kbrel.probes.base import ProbeRun
from pytest_kbrel.probes.monitor.cells import with_equal_negatives
from pytest_kbrel.records import Case, ProbeName, record


@record
class Implementation:
    """``run`` asks a case. ``level`` makes its facts alike where they are asked in several chunks."""

    run: Callable[[Case], ProbeRun]
    level: Callable[[Case], Case] = lambda case: case


IMPLEMENTATIONS: Mapping[ProbeName, Implementation] = {
    "monitor": Implementation(run=monitor.run, level=with_equal_negatives),
    "head_to_tail": Implementation(run=head_to_tail.run),
    "reliability": Implementation(run=reliability.run),
}
