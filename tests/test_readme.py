"""The README: its links, its length, its suite, and what it says of flags and candidates."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from pytest_kbrel.plugin import options

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
REPOSITORY = PROJECT["urls"]["Repository"]
RAW = REPOSITORY.replace("https://github.com/", "https://raw.githubusercontent.com/")
LINKS = sorted(
    {
        "".join(link)
        for link in re.findall(r'\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]*)"', README)
    }
)
OURS = [
    link
    for link in (*LINKS, *PROJECT["urls"].values())
    if link.startswith((REPOSITORY + "/", RAW + "/"))
]


def anchors(page: str) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    page = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", page, flags=re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 850
    # What a newcomer reads up to a verdict and what it means.
    assert len(README.partition("`kbrel-report/report.html`")[0].split()) <= 400


def test_the_wheel_has_the_name_of_this_version() -> None:
    name = f"dist/pytest_kbrel-{PROJECT['version']}-py3-none-any.whl"
    for page in (README, (ROOT / "docs/index.md").read_text(encoding="utf-8")):
        assert f'$ pip install "{name}[hf]"' in page


@pytest.mark.parametrize("link", LINKS)
def test_every_link_is_absolute(link: str) -> None:
    # A package index shows the README without the files beside it.
    assert link.startswith("https://")


@pytest.mark.parametrize("link", OURS)
def test_links_into_the_repository_lead_somewhere(link: str) -> None:
    match = re.fullmatch(
        r"/(?:(?:blob/|tree/)?main/(?P<path>[^#]+)(?:#(?P<anchor>.+))?|issues)",
        _path(link),
    )
    assert match is not None
    if match["path"] is None:
        return
    path = ROOT / match["path"]
    assert path.exists()
    assert match["anchor"] is None or match["anchor"] in anchors(
        path.read_text(encoding="utf-8")
    )


def _path(link: str) -> str:
    return link.removeprefix(REPOSITORY).removeprefix(RAW)


def test_the_anchors_are_those_of_github() -> None:
    page = "# Gates, `min` and more\n```console\n# no heading\n```\n## What's new?\n"
    assert anchors(page) == {"gates-min-and-more", "whats-new"}


def test_every_place_has_the_same_address() -> None:
    places = ("README.md", "mkdocs.yml", "docs/**/*.md", ".github/workflows/*.yml")
    address = re.compile(
        r"(?:github(?:usercontent)?\.com/|uses: )([\w.-]+/pytest-kbrel)\b"
    )
    written = {
        (path.name, repository)
        for place in places
        for path in ROOT.glob(place)
        for repository in address.findall(path.read_text(encoding="utf-8"))
    }
    assert {name for name, _ in written} >= {
        "README.md",
        "ci.md",
        "gate.yml",
        "bless.yml",
    }
    assert {repository for _, repository in written} == {
        REPOSITORY.removeprefix("https://github.com/")
    }


def test_the_pictures_are_small() -> None:
    pictures = [link for link in LINKS if link.endswith(".png")]
    assert len(pictures) == 2
    for link in pictures:
        assert (
            20_000
            < (ROOT / _path(link).removeprefix("/main/")).stat().st_size
            < 200_000
        )


@pytest.mark.parametrize("flag", sorted(set(re.findall(r"--kb-[a-z-]+", README))))
def test_every_flag_in_the_readme_is_one(flag: str) -> None:
    assert flag in {option.flag for option in options.FLAGS}


@pytest.mark.parametrize(
    "target", sorted(set(re.findall(r"(?:`|\\$ )make ([a-z-]+)", README)))
)
def test_every_target_in_the_readme_is_one(target: str) -> None:
    assert f"\n{target}: " in (ROOT / "Makefile").read_text(encoding="utf-8")
