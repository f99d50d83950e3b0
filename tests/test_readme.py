"""What the README shows is what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_kbrel.plugin import options
from pytest_kbrel.resources import suites
from pytest_kbrel.suites import load_suite

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_suite_it_shows_loads(tmp_path):
    text = re.search(r"```yaml\n(.*?)```", README, flags=re.DOTALL).group(1)
    (tmp_path / "world").symlink_to(suites() / "world")
    path = tmp_path / "capitals.kb.yaml"
    path.write_text(text, encoding="utf-8")
    suite = load_suite(path)
    assert [case.id for case in suite.cases] == ["monitor[P36]", "monitor[P17]"]


@pytest.mark.parametrize("flag", options.FLAGS, ids=lambda flag: flag.name)
def test_it_lists_every_flag(flag):
    assert f"`{flag.flag}" in README


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_what_it_links_to_is_there(path):
    assert (ROOT / path).exists()
