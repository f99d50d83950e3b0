"""``kbrel check``: what loading finds of a checkpoint, and some of its answers."""

from __future__ import annotations

import dataclasses
import shutil
from typing import TYPE_CHECKING

from pytest_kbrel.cli.arguments import (
    Options,
    argument,
    command,
    print_result,
)
from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.printing import format_table, wrap

if TYPE_CHECKING:
    from pytest_kbrel.models.checkpoint.checks import Finding


@command(
    "check",
    "say what loading finds of a checkpoint; exit code 1 on an error",
    argument("model", "as --kb-model names it: a folder or hub id", metavar="CKPT"),
    argument("--kb-model-args", "as for pytest", metavar="K=V,…", default=""),
    epilog="an error ends it; three questions at the end are asked of plain transformers too",
)
def _run(options: Options) -> int:
    from pytest_kbrel.errors import NoFolderError
    from pytest_kbrel.models.checkpoint.spec import ModelSpec
    from pytest_kbrel.models.hf.backend import HF, load
    from pytest_kbrel.models.registry import check_spec, read_spec

    spec = read_spec(options.model, options.kb_model_args)
    if not isinstance(spec, ModelSpec):
        raise KbrelError(
            f"{options.model}: not loaded by transformers; allowed: {', '.join(HF.forms)}"
        )
    findings: list[Finding] = []
    error = ""
    try:
        check_spec(spec)
        model = load(spec, findings=findings)
        findings.append(model.check_answers())
    except NoFolderError:
        raise
    except ModelError as failure:
        error = str(failure)
    width = shutil.get_terminal_size().columns
    rows = [("note" if one.note else "ok", one.part, one.state) for one in findings]
    lines = [
        line
        for row, one in zip(format_table(rows, left=range(3)), findings, strict=True)
        for line in (row, *(wrap(one.note, width, "      ") if one.note else ()))
    ]
    lines += wrap(f"error  {error}", width, "") if error else []
    document = {
        "model": spec.name,
        "error": error or None,
        "findings": [dataclasses.asdict(one) for one in findings],
    }
    print_result(options, document, lines)
    return 1 if error else 0
