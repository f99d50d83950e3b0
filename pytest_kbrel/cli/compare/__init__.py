"""``kbrel compare``: models side by side, and how their figures go together."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_kbrel.cli.arguments import STDOUT, Commands

_PAGE = Path("kbrel-compare.html")
_LIST: dict[str, Any] = {"action": "append", "default": []}
# Flags of runs of other tools, with what argparse is to know of them.
_FOREIGN: dict[str, dict[str, Any]] = {
    "--max-drop": {
        "metavar": "NUMBER",
        "help": "how much worse each metric may be: 0.05, or within:0.08,beyond:0.02",
    },
    "--recovery": {
        "metavar": "NUMBER",
        "help": "the least share of the baseline's value: 0.95, or within:0.9,beyond:0.97",
    },
    "--gates": {
        "type": Path,
        "metavar": "FILE",
        "help": "a YAML file of gates: {CASE: {METRIC: {recovery: 0.95}}}",
    },
    "--metric": {
        **_LIST,
        "dest": "metrics",
        "metavar": "NAME",
        "help": "compare this metric only; may be repeated (default: all)",
    },
    "--lower-is-better": {
        **_LIST,
        "dest": "lower",
        "metavar": "NAME",
        "help": "a metric of which less is better; may be repeated",
    },
    "--pool": {
        **_LIST,
        "metavar": "GROUP",
        "help": "make one case of the tasks of this group of lm_eval; may be repeated",
    },
    "--id": {
        "metavar": "KEY",
        "default": "",
        "help": "the key of a row's id in CSV and JSON lines (default: id, sample_id, doc_id, ...)",
    },
    "--group-by": {
        "dest": "group",
        "metavar": "KEY",
        "default": "",
        "help": "make a case of each value of KEY, such as subject",
    },
    "--cluster": {
        "metavar": "KEY",
        "default": "",
        "help": "rows with the same value of KEY change together, such as the document asked about",
    },
}


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "compare",
        help="put models side by side and correlate their figures, as the papers do",
    )
    parser.add_argument(
        "model",
        nargs="+",
        help="a report folder, a report.json, a baseline's name or path, or published/PAPER/MODEL; "
        "all models of a paper: published/monitor, 'published/reliable-kb/*/four-shot'; or runs of another "
        "tool: lm_eval --log_samples, Inspect, Every Eval Ever, CSV or JSON lines",
    )
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="exit with 1 when a gate of a later run fails against the first one",
    )
    parser.add_argument(
        "--inconclusive",
        choices=("warn", "fail"),
        default="warn",
        help="whether --exit-code is 1 for a gate that is inconclusive (default: warn, which is 0)",
    )
    parser.add_argument(
        "--json",
        nargs="?",
        const=STDOUT,
        type=Path,
        metavar="FILE",
        help="write everything to FILE as well; without FILE, behind the models, to standard output instead",
    )
    parser.add_argument(
        "--html",
        nargs="?",
        const=_PAGE,
        type=Path,
        metavar="FILE",
        help=f"write a page for the browser to FILE as well; without FILE, behind the models, to {_PAGE}; "
        "runs of other tools have no page",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print all figures, correlations and facts of recorded runs, not one screen",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace files that are there"
    )
    others = parser.add_argument_group("runs of other tools")
    foreign_flags = {
        flag: others.add_argument(flag, **how).dest for flag, how in _FOREIGN.items()
    }
    parser.set_defaults(run=_run, foreign_flags=foreign_flags)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.cli.compare.run import run

    return run(options)
