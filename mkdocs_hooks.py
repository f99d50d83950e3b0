"""Hook of the documentation site (mkdocs.yml): files of the repository that pages link to become part of it.

On GitHub, pages link to files outside ``docs/`` by their path in the repository. The site has these files
below ``repository/``, and the links of all pages are turned to them. What is not there stays as it is, and
MkDocs refuses the link.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent
DOCS, REPOSITORY = "docs/", "repository/"
# What is copied; the code is not.
COPIED = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/*.md",
    "benchmarks/*.svg",
    "examples/*",
    "pytest_kbrel/reference/MODEL_CARD.md",
    "recipe/README.md",
    "tests/foreign/made/README.md",
)
_log = logging.getLogger("mkdocs.hooks.repository")
# A text without a blank line before it would be a row of the table.
_BEHIND_TABLE = re.compile(r"^\|.*\n((?!\|)\S.*)", re.MULTILINE)
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|[#/])([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside the folder of the documentation."""
    for path in sorted(path for pattern in COPIED for path in ROOT.glob(pattern)):
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, REPOSITORY + name, abs_src_path=str(path)))
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Turn the links to files of the repository to those of the site."""
    own = page.file.src_uri
    folder = posixpath.dirname(
        own.removeprefix(REPOSITORY) if own.startswith(REPOSITORY) else DOCS + own
    )

    def link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match[1]))
        target = path.removeprefix(DOCS) if path.startswith(DOCS) else REPOSITORY + path
        if files.get_file_from_path(target) is None:
            return match[0]
        return posixpath.relpath(target, posixpath.dirname(own) or ".")

    for line in _BEHIND_TABLE.findall(_FENCED.sub("", markdown)):
        _log.warning("%s: a table needs a blank line behind it: %s", own, line)
    return _LINK.sub(link, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    """Warn of a list without a blank line before it, which GitHub shows as a list and this site as text."""
    for text in re.findall(r"<p>(.*?)</p>", html, re.DOTALL):
        if (item := re.search(r"^ *(?:[-*]|\d+\.) .*", text, re.MULTILINE)) is not None:
            _log.warning(
                "%s: a list needs a blank line before it: %s",
                page.file.src_uri,
                item[0].strip(),
            )
