"""The documentation as a site: what `make docs` refuses, and that links to the repository lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="make .venv/.test installs it")
ROOT = Path(__file__).parent.parent
GOOD = "# Title\n\n## A part\n\n[a part](#a-part), [security](../SECURITY.md#a-rule)\n"


@pytest.fixture
def built(tmp_path):
    """Build a site of one page with the settings of the real one."""

    def build(page: str, *, other: bool = False) -> subprocess.CompletedProcess[str]:
        config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
        config = re.sub(
            r"^nav:\n(?: .*\n)+", "nav: [index.md]\n", config, flags=re.MULTILINE
        )
        (tmp_path / "mkdocs.yml").write_text(config, encoding="utf-8")
        hooks = (ROOT / "mkdocs_hooks.py").read_text(encoding="utf-8")
        (tmp_path / "mkdocs_hooks.py").write_text(hooks, encoding="utf-8")
        (tmp_path / "SECURITY.md").write_text(
            "# Security\n\n## A rule\n\n[back](docs/index.md)\n"
        )
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs/index.md").write_text(page, encoding="utf-8")
        if other:
            (tmp_path / "docs/other.md").write_text("# Other\n", encoding="utf-8")
        command = [sys.executable, "-m", "mkdocs", "build"]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )

    return build


@pytest.mark.slow
def test_files_of_the_repository_that_are_linked_become_pages(built, tmp_path):
    result = built(GOOD)
    assert result.returncode == 0, result.stderr
    site = tmp_path / "build/site"
    assert 'href="repository/SECURITY/#a-rule"' in (site / "index.html").read_text(
        encoding="utf-8"
    )
    page = (site / "repository/SECURITY/index.html").read_text(encoding="utf-8")
    assert '<a href="../../">back</a>' in page


FAULTS = {
    "[x](nowhere.md)\n": "'nowhere.md', but the target is not found",
    "[x](#nowhere)\n": "link '#nowhere', but there is no such anchor",
    "[x](../SECURITY.md#nowhere)\n": "SECURITY.md' does not contain an anchor '#nowhere'",
    "[x](../pytest_kbrel/bounds.py)\n": "'../pytest_kbrel/bounds.py', but the target is not found",
    "[x](/index.md)\n": "absolute link",
    "| a |\n|---|\n| b |\nText\n": "a table needs a blank line behind it: Text",
    "A list:\n- one\n": "a list needs a blank line before it: - one",
}


@pytest.mark.slow
def test_each_fault_of_a_page_fails_the_build(built):
    result = built("\n".join((GOOD, *FAULTS)), other=True)
    assert result.returncode == 1
    # Each warning fails it: it is strict.
    warned = [line for line in result.stderr.splitlines() if "WARNING" in line]
    for message in FAULTS.values():
        assert any(re.search(message, line) for line in warned), result.stderr
    absent = r"not included in the .nav. configuration:\s+- other.md"
    assert re.search(absent, result.stderr), result.stderr
