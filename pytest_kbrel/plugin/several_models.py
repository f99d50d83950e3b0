"""Several models in one command: a session for each of them, and one page that compares them.

``--kb-model=A|B``, or ``--kb-model-args=peft=A|B``, names them. The sessions are processes one after the
other that share the cache. The first is that of a baseline model, which is asked once so, and which the page
compares the others with.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_kbrel.baselines import is_there
from pytest_kbrel.plugin.options import (
    is_on_command_line,
    refusal,
    text_of,
    with_flags,
)
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.reports import REPORT

_SEPARATOR = "|"
# Arguments of a model that may have alternatives: others, such as marks of thoughts, contain the separator.
_ARGUMENT = re.compile(
    r"(?:^|(?<=,))\s*(?:peft|gguf_file|revision|dtype)=([^,|]*\|[^,]*)"
)
_PAGE = "compare.html"
# The name of a baseline model's session.
_BASE = "baseline"
# What is made from one run alone.
_OF_ONE = ("baseline_update", "from_run", "export_requests")


def alternatives(model: str, model_args: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each model with its ``--kb-model`` and ``--kb-model-args``.

    Raises ``ValueError`` where two settings have alternatives, and where one is empty or given twice.
    """
    places = [match.span(1) for match in _ARGUMENT.finditer(model_args)]
    if len(places) + (_SEPARATOR in model) > 1:
        raise ValueError("found several of two settings; allowed: several of one")
    start, end = places[0] if places else (0, 0)
    text = model_args[start:end] or model
    values = [value.strip() for value in text.split(_SEPARATOR)]
    if "" in values or len(set(values)) < len(values):
        raise ValueError(f"found {text!r}; allowed: different ones, none empty")
    # Resolved, ``.`` and ``..`` have a name too.
    names = [re.sub(r"[^\w.-]+", "-", Path(value).resolve().name) for value in values]
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        args = model_args[:start] + value + model_args[end:]
        yield (
            f"{number + 1}-{name}" if [*names, _BASE].count(name) > 1 else name,
            *((model, args) if places else (value, model_args)),
        )


def run_each(config: pytest.Config) -> int | None:
    """Run a session for each model and write the comparison; ``None`` where there is only one model.

    What ends without a verdict keeps no other model from its session. Returns the worst exit code of those
    that are gated.
    """
    model, model_args = text_of(config, "model"), text_of(config, "model_args")
    if _SEPARATOR not in model and not _ARGUMENT.search(model_args):
        return None
    try:
        models = list(alternatives(model, model_args))
    except ValueError as error:
        raise refusal(config, "model", error) from None
    for name in _OF_ONE:
        if is_on_command_line(config, name) or text_of(config, name):
            raise refusal(config, name, "found several models; allowed: one")
    here, output = config.invocation_params.dir, Path(text_of(config, "output_path"))
    settings, junit = read_settings(config), config.getoption("xmlpath", None)
    codes: list[int] = []
    ends = []
    named = settings.baseline and is_there(settings.baseline, here)
    reported = [settings.baseline] if named else []
    if settings.baseline_model and not settings.until_decided:
        base, _, args = settings.baseline_model.partition(",")
        models.insert(0, (_BASE, base, args))
    for number, (name, one, args) in enumerate(models, start=1):
        print(f"=== {name} ({number} of {len(models)})", flush=True)
        folder = output / name
        flags = [f"--kb-model={one}", f"--kb-model-args={args}"]
        flags.append(f"--kb-output-path={folder}")
        if name == _BASE:
            # Nobody gates it, but all of it is compared with.
            flags += ["--kb-baseline-model=", "--maxfail=0", "--junitxml="]
        elif junit:
            path = Path(junit)
            flags.append(f"--junitxml={path.with_stem(f'{path.stem}-{name}')}")
        # What failed with one model tells --lf nothing of the next.
        if config.pluginmanager.hasplugin("cacheprovider"):
            flags.append(
                f"--override-ini=cache_dir={config.getini('cache_dir')}/{name}"
            )
        command = [sys.executable, "-m", "pytest", *with_flags(config, flags)]
        before = _written(here / folder)
        with subprocess.Popen(command, cwd=here) as session:
            try:
                code = session.wait()
            except KeyboardInterrupt:
                # The session was interrupted as well, and says itself how far it came.
                session.wait()
                return pytest.ExitCode.INTERRUPTED
        end = f"{name}: no report, exit code {code}"
        # An earlier report says nothing of a plan, or of a session that began with an error.
        if _written(here / folder) != before:
            reported.append(str(folder))
            end = f"{name}: {'failed' if code else 'passed'}"
        if name != _BASE:
            codes.append(code)
            ends.append(end)
    if len(reported) > 1:
        page = f"--html={output / _PAGE}"
        compare = [sys.executable, "-m", "pytest_kbrel.cli", "compare", *reported]
        subprocess.run([*compare, page, "--force"], cwd=here, check=False)
    print(*ends, sep="\n")
    # That of a session which a signal ended is negative.
    return max(codes, key=abs)


def _written(folder: Path) -> int:
    """Return when the report in a folder was written, 0 where there is none."""
    report = folder / REPORT
    return report.stat().st_mtime_ns if report.is_file() else 0
