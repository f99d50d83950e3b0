"""Workers in another folder or on another machine (--tx): what they are sent, and what they send back.

A worker that pytest-xdist starts in the session's own folder writes its responses where the controller joins
them. Another one may see another disk: it keeps them in a temporary folder and sends those of each item with
the item's reports. It reads its own copy of suites and baseline, so it says which ones these are.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel import __version__
from pytest_kbrel.baselines import Baseline
from pytest_kbrel.evaluation.model_pool import run_lock
from pytest_kbrel.plugin.options import ELSEWHERE, FLAGS
from pytest_kbrel.records import Suite
from pytest_kbrel.serialization import dumps_compact
from pytest_kbrel.settings import Settings

# The attribute of a report with the responses of its item.
_RESPONSES = "kbrel_responses"
_VERSION = """
try:
    from pytest_kbrel import __version__ as version
except ImportError:
    version = ""
channel.send(version)
"""
# Seconds that a machine has to say which version is installed there.
_PATIENCE = 60.0
spool_key = pytest.StashKey[Path]()


def is_elsewhere(spec: Any) -> bool:
    """Return True if a worker with this spec of execnet may see other files than the controller."""
    return not spec.popen or bool(spec.chdir or spec.via)


def check_arguments(config: pytest.Config, specs: Sequence[Any]) -> None:
    """Raise ``UsageError`` for paths on the command line that xdist cannot pass to a worker elsewhere."""
    there = next(filter(is_elsewhere, specs), None)
    if there is None:
        return
    roots = [
        Path(root).resolve()
        for root in (*config.option.rsyncdir, *config.getini("rsyncdirs"))
    ]
    for argument in map(str, config.invocation_params.args):
        path = Path(argument.partition("::")[0])
        if path.exists() and not any(path.is_relative_to(root) for root in roots):
            raise pytest.UsageError(
                f"--tx {there}: found the path {argument}, and xdist passes only paths that it copies to the "
                f"worker; allowed: {path.resolve()} with --rsyncdir={Path.cwd()}, or no path where the ini "
                "file there has testpaths"
            )


def prepare(node: Any) -> None:
    """Send a worker elsewhere the options that stand in the environment.

    Raises ``UsageError`` where the plugin is not installed there in this version.
    """
    spec = node.gateway.spec
    if not is_elsewhere(spec):
        return
    # A worker that is a process of this machine has the controller's sys.path.
    if not spec.popen:
        installed = node.gateway.remote_exec(_VERSION).receive(_PATIENCE)
        if installed != __version__:
            has = (
                f"has pytest-kbrel {installed}"
                if installed
                else "does not have pytest-kbrel"
            )
            raise pytest.UsageError(
                f"--tx {spec}: its Python {has}; allowed: {__version__}, as here: "
                f'pip install "pytest-kbrel[xdist]=={__version__}" with the extras of the model'
            )
    names = [flag.environment for flag in FLAGS]
    node.workerinput[ELSEWHERE] = {
        name: os.environ[name] for name in names if name in os.environ
    }


def arrive(config: pytest.Config) -> None:
    """Take over, in a worker, the options that it was sent."""
    for name, value in getattr(config, "workerinput", {}).get(ELSEWHERE, {}).items():
        os.environ.setdefault(name, value)


def settings_there(config: pytest.Config, settings: Settings) -> Settings:
    """Return the settings of a process: in a worker elsewhere without a cache for a model on a server.

    Answers of a server are kept until the run ends, and nobody tells that machine when it does.
    """
    if (
        ELSEWHERE not in getattr(config, "workerinput", {})
        or run_lock(settings) is None
    ):
        return settings
    return replace(settings, use_cache=None)


def own_spool(config: pytest.Config, name: str) -> Path | None:
    """Return the file in which a worker elsewhere keeps its responses, ``None`` for another process."""
    if ELSEWHERE not in getattr(config, "workerinput", {}):
        return None
    folder = tempfile.TemporaryDirectory(prefix="kbrel-")
    config.add_cleanup(folder.cleanup)
    config.stash[spool_key] = Path(folder.name) / name
    return config.stash[spool_key]


def attach_responses(report: pytest.TestReport, config: pytest.Config) -> None:
    """Attach to a report what a worker elsewhere was answered since the one before."""
    spool = config.stash.get(spool_key, None)
    if spool is not None and spool.exists():
        packed = base64.b64encode(zlib.compress(spool.read_bytes(), 1))
        setattr(report, _RESPONSES, packed.decode("ascii"))
        spool.unlink()


def keep_responses(report: pytest.TestReport, folder: Path) -> None:
    """Add the responses on a report to the spool file of its worker in ``folder``."""
    packed: str | None = getattr(report, _RESPONSES, None)
    if packed is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    worker = getattr(report, "worker_id", "elsewhere")
    with (folder / f"{worker}.jsonl").open("ab") as stream:
        stream.write(zlib.decompress(base64.b64decode(packed)))
    # pytest keeps all reports to the end.
    delattr(report, _RESPONSES)


def what_was_read(
    config: pytest.Config, suites: Sequence[Suite], baseline: Baseline | None
) -> str:
    """Return what a worker elsewhere has read, for :class:`Copies`; ``""`` for another process."""
    if ELSEWHERE not in getattr(config, "workerinput", {}):
        return ""
    return json.dumps(_digests(suites, baseline))


class Copies:
    """Holds what workers have read against the controller's own suites and baseline, each text once."""

    def __init__(self) -> None:
        self._same = {""}

    def differences(
        self, read: str, suites: Sequence[Suite], baseline: Baseline | None
    ) -> str:
        """Return in words how a worker's copies differ, empty if they do not."""
        if read in self._same:
            return ""
        own, there = _digests(suites, baseline), json.loads(read)
        for name in own.keys() & there.keys():
            if own[name] != there[name]:
                return (
                    f"{name} is not the same one on all machines (its files or its facts differ); copy the "
                    "project again, or check out the same commit"
                )
        self._same.add(read)
        return ""


def _digests(suites: Sequence[Suite], baseline: Baseline | None) -> dict[str, str]:
    # A worker needs nothing else of what builds a run.
    from pytest_kbrel.session.run_builder import suite_digest

    digests = {suite.path: suite_digest(suite) for suite in suites}
    if baseline is not None:
        of = [baseline.created, baseline.commit, baseline.model, baseline.settings]
        digests["the baseline"] = dumps_compact(of)
    return digests
