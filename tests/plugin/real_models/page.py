"""The table and the printed blocks of ``docs/real-models.md``.

``python -m tests.plugin.real_models.page FOLDER`` makes all checkpoints in a folder, gates each, and writes
the table anew.
"""

import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.plugin.real_models.cases import CASES, PROBES, verdicts_in
from tests.plugin.real_models.checkpoints import make_checkpoint
from tests.plugin.real_models.manners import RAW
from tests.plugin.real_models.world import write_suite

PAGE = Path(__file__).parents[3] / "docs" / "real-models.md"
_BEGIN, _END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
MANNERS = {
    "instruct": "knows its facts, says `unsure` else",
    "spaced": "the same, with a blank before each answer",
    "chatty": "answers in a sentence",
    "french": "declines everything: `Je ne sais pas.`",
    "thinker": "thinks, then answers",
    "endless": "thinks without end",
    "only-mark": "writes `<think>` and ends",
    "base": "goes on with the text",
    "newline": "the same, behind a line break",
    "random": "has random weights",
}
SHAPES = {
    "qwen3": "Qwen3",
    "llama3": "Llama 3",
    "gemma3": "Gemma 3",
    "deepseek-r1": "DeepSeek-R1",
    RAW: "none",
}


def table_row(case, verdicts):
    """Return the line of the table about a case, with the verdicts that came out."""
    said = case.args or case.suite.strip()
    cells = (
        MANNERS[case.manner],
        SHAPES[case.shape],
        f"`{said}`" if said else "",
        *verdicts,
    )
    return "| " + " | ".join(cells) + " |"


def table(verdicts):
    """Return the whole table; ``verdicts`` are those of each case's id."""
    heads = ("the model", "its template", "with", *PROBES)
    rows = [table_row(case, verdicts[case.id]) for case in CASES]
    return "\n".join(
        ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|", *rows]
    )


def rows_in(text):
    """Return the lines of the page's table by the ids of the cases, in whose order they stand.

    Raises ``ValueError`` where there are more or fewer of them than cases.
    """
    _, _, rest = text.partition(_BEGIN)
    rows = rest.partition(_END)[0].strip().splitlines()[2:]
    return {case.id: row for case, row in zip(CASES, rows, strict=True)}


def lines_in(text, name):
    """Return the lines of the blocks that are said to be printed for a case, their blanks made single.

    What was cut off a line stands as ``…`` at its end.
    """
    lines = [
        line for block in _blocks(text, "printed", name) for line in block.splitlines()
    ]
    return [" ".join(line.split()) for line in lines if line.strip()]


def records_in(text, name):
    """Return what is said to be recorded of a case's responses."""
    return [json.loads(block) for block in _blocks(text, "recorded", name)]


def _blocks(text, kind, name):
    return re.findall(
        rf"<!-- {kind}: {re.escape(name)} -->\n```\w+\n(.*?)```", text, flags=re.DOTALL
    )


def names_in(text):
    """Return the ids of all cases that the page shows blocks of."""
    return set(re.findall(r"<!-- (?:printed|recorded): (\S+) -->", text))


def main(folder):
    """Gate every case in a folder of its own and put the table into the page."""
    result = {}
    for case in CASES:
        there = folder / case.id
        make_checkpoint(there / case.name, case.manner, case.shape)
        write_suite(there / "suites", head=case.suite)
        with (
            contextlib.chdir(there),
            contextlib.redirect_stdout(io.StringIO()) as printed,
        ):
            pytest.main(["-p", "no:cacheprovider", "suites", "-v", *case.flags])
        (there / "printed.txt").write_text(printed.getvalue(), encoding="utf-8")
        report = json.loads(
            (there / "kbrel-report" / "report.json").read_text(encoding="utf-8")
        )
        result[case.id] = verdicts_in(report, case)
        print(table_row(case, result[case.id]), flush=True)
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    PAGE.write_text(
        f"{before}{_BEGIN}\n\n{table(result)}\n\n{_END}{rest.partition(_END)[2]}",
        encoding="utf-8",
    )


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    main(Path(sys.argv[1]).resolve())
