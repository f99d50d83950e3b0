"""The file of pytest's ``--junitxml``: properties of the run, and where the figures of its cases stand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_kbrel.reports.junit import move_properties


def complete_junit(
    config: pytest.Config, properties: Sequence[tuple[str, str]], *, as_properties: bool
) -> None:
    """Add properties of the run to the JUnit file, if one is written, before pytest writes it.

    The properties of cases are moved into their output, unless ``as_properties``.
    """
    try:
        # pytest has no public way: record_testsuite_property does nothing under xdist (pytest #7767).
        from _pytest.junitxml import xml_key
    except ImportError:
        return
    xml = config.stash.get(xml_key, None)
    if xml is None:
        return
    for name, value in properties:
        xml.add_global_property(name, value)
    for reporter in xml.node_reporters.values():
        # Of an item that a worker died before, and that another one has run since.
        if not (reporter.nodes or reporter.duration):
            xml.node_reporters_ordered.remove(reporter)
    if not as_properties:
        # A finished case returns the element that will be written. One that was cut short has no properties.
        for reporter in xml.node_reporters_ordered:
            move_properties(reporter.to_xml())
