"""``kbrel compare``: models side by side, and how their figures go together; ``kbrel trend``: in the order of time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_kbrel.cli.arguments import (
    FORCE,
    STDOUT,
    Argument,
    Options,
    argument,
    command,
    switch,
)

_LIST: dict[str, Any] = {"action": "append", "default": []}


def _foreign(name: str, about: str, metavar: str, **how: Any) -> Argument:
    dest = name.removeprefix("--").replace("-", "_")
    how = {"metavar": metavar, "dest": dest, **how}
    return argument(name, about, group="runs of other tools", **how)


def _page(name: str, behind: str, note: str = "") -> Argument:
    return argument(
        "--html",
        f"write a page for the browser to FILE as well; without FILE, behind the {behind}, to {name}{note}",
        Path,
        nargs="?",
        const=Path(name),
        metavar="FILE",
    )


FOREIGN = (
    _foreign(
        "--max-drop",
        "how much worse each metric may be: 0.05, or within:0.08,beyond:0.02",
        "NUMBER",
    ),
    _foreign(
        "--recovery",
        "the least share of the baseline's value: 0.95, or within:0.9,beyond:0.97",
        "NUMBER",
    ),
    _foreign(
        "--gates",
        "a YAML file of gates: {CASE: {METRIC: {recovery: 0.95}}}",
        "FILE",
        type=Path,
    ),
    _foreign(
        "--metric",
        "compare this metric only; may be repeated (default: all)",
        "NAME",
        dest="metrics",
        **_LIST,
    ),
    _foreign(
        "--lower-is-better",
        "a metric of which less is better; may be repeated",
        "NAME",
        dest="lower",
        **_LIST,
    ),
    _foreign(
        "--pool",
        "make one case of the tasks of this group of lm_eval; may be repeated",
        "GROUP",
        **_LIST,
    ),
    _foreign(
        "--id",
        "the key of a row's id in CSV and JSON lines (default: id, sample_id, doc_id, ...)",
        "KEY",
        default="",
    ),
    _foreign(
        "--group-by",
        "make a case of each value of KEY, such as subject",
        "KEY",
        dest="group",
        default="",
    ),
    _foreign(
        "--cluster",
        "rows with the same value of KEY change together, such as the document asked about",
        "KEY",
        default="",
    ),
)


@command(
    "compare",
    "put models side by side and correlate their figures, as the papers do",
    argument(
        "model",
        "a report folder, a report.json, a baseline's name or path, or published/PAPER/MODEL; "
        "all models of a paper: published/monitor, 'published/reliable-kb/*/four-shot'; or runs of another "
        "tool: lm_eval --log_samples, Inspect, Every Eval Ever, CSV or JSON lines",
        nargs="+",
    ),
    switch(
        "--exit-code",
        "exit with 1 when a gate of a later run fails against the first one",
    ),
    argument(
        "--inconclusive",
        "whether --exit-code is 1 for a gate that is inconclusive (default: warn, which is 0)",
        choices=("warn", "fail"),
        default="warn",
    ),
    argument(
        "--json",
        "write everything to FILE as well; without FILE, behind the models, to standard output instead",
        Path,
        nargs="?",
        const=STDOUT,
        metavar="FILE",
    ),
    _page("kbrel-compare.html", "models", "; runs of other tools have no page"),
    switch(
        "-v --verbose",
        "print all figures, correlations and facts of recorded runs, not one screen",
    ),
    FORCE,
    *FOREIGN,
    json=False,
)
def _run(options: Options) -> int:
    from pytest_kbrel.cli.compare.run import run

    return run(options, FOREIGN)


@command(
    "trend",
    "put runs in the order of time: a line a metric, and drops that add up",
    argument(
        "runs",
        "a report folder or its report.json, a folder of these, or a baseline's name or path",
        Path,
        metavar="RUN",
        nargs="+",
    ),
    _page("kbrel-trend.html", "runs"),
    FORCE,
)
def _trend(options: Options) -> int:
    from pytest_kbrel.cli.compare.trend import run

    return run(options)
