"""Write ``docs/hostile-inputs.md`` from the tables: ``python -m tests.hostile.page``."""

from __future__ import annotations

from pathlib import Path

from tests.hostile import TABLES, servers

PAGE = Path(__file__).parents[2] / "docs" / "hostile-inputs.md"
TOP = """\
# Hostile inputs

What is put in, the exit code of pytest or `kbrel`, and a part of what is printed. Each row is a slow test
(`make test-slow`, `tests/hostile/`). Each also holds that no Python traceback is printed, that no code of a
file runs, that no report says `pass` unless the exit code is 0, and that all is over within 10 seconds. Exit
code 0 stands at what is odd and sound.

{count} rows. `python -m tests.hostile.page` writes this page; [SECURITY.md](../SECURITY.md) says what is
promised against whom.

Faults that are no input are tested beside their part:

| fault | tests |
|---|---|
| 18 deaths of a worker | `tests/plugin/test_xdist.py` |
| lost reports | `tests/plugin/test_xdist.py`, `tests/plugin/test_soundness.py` |
| SIGTERM, SIGINT and SIGKILL of a run | `tests/plugin/test_ended_early.py` |
| killed runs that go on, servers that change meanwhile | `tests/plugin/served/` |
| a blessing that is killed, a full disk | `tests/baselines/test_atomic_replace.py` |
| damaged and full stores of answers | `tests/models/cache/test_store.py` |
| folders shared by several runs | `tests/plugin/test_output_folder.py` |
| weights that change during a run | `tests/plugin/test_overwritten_checkpoint.py` |
| endless, huge, compressed and redirected replies | `tests/models/openai/test_bounds.py` |
| log commands in answers | `tests/plugin/test_log_commands.py` |
| keys in answers | `tests/plugin/served/test_keys.py` |
| hostile text in the page of the report | `tests/reports/test_html.py`, `tests/hostile/test_browser.py` |
| input made at random | [fuzzing.md](fuzzing.md) |
"""


def cell(text: str) -> str:
    """Return a text as a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def text() -> str:
    """Return the page."""
    tables = {
        **{
            name: [(row.what, row.exit, row.printed) for row in rows]
            for name, rows in TABLES.items()
        },
        "servers": [(row.what, row.exit, row.printed) for row in servers.ROWS],
    }
    parts = [TOP.format(count=sum(map(len, tables.values())))]
    for name, rows in tables.items():
        lines = [
            f"| {cell(what)} | {exit} | {f'`{part}`' if part else ''} |"
            for what, exit, part in rows
        ]
        head = f"## {name[0].upper() + name[1:]} ({len(rows)})\n\n| input | exit code | printed |\n|---|---|---|"
        parts.append("\n".join([head, *lines]) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
