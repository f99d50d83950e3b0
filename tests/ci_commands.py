"""Small readers of the commands that CI systems take from a job's log, each as its own documentation has it.

    assert commands_in(result.stdout.str()) == []

They read as leniently as any of the real ones: a command that some version would obey is one.
"""

from __future__ import annotations

import re

# What comparisons by the rules of a language ignore, but for joiners and variation selectors, which texts need.
_IGNORED = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")
_ANYWHERE = {
    "azure": re.compile(r"##vso\[.*?\]", re.IGNORECASE),
    "teamcity": re.compile(r"##teamcity\["),
    "older github, azure sections": re.compile(r"##\["),
    "travis": re.compile(r"travis_(fold|time):"),
    "gitlab": re.compile(r"section_(start|end):\d"),
    "buildkite": re.compile("\x1b_bk;"),
    "terminal": re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]"),
}
_GITHUB = re.compile(r"::[A-Za-z].*?::")

FORMS = (
    "##vso[task.complete result=Succeeded;]",
    "##VSO[task.setvariable variable=x]y",
    "##[error]boo",
    "##[set-output name=a;]b",
    "##teamcity[buildStatus status='SUCCESS']",
    "::error file=a.py,line=1::boo",
    "  ::add-mask::e",
    "\u00a0::stop-commands::token",
    "text\n::error::x",
    "text\r::error::x",
    "text\r\n\t::warning::x",
    "text\u2028::error::x",
    "\ufeff::error::x",
    "###[error]x",
    "travis_fold:start:name",
    "section_start:1700000000:name\r\x1b[0K",
    "\x1b_bk;t=1\x07",
    "\x1b[2J\x9b31m",
)
"""A text with each form of command, or of what a terminal obeys."""


def commands_in(text: str) -> list[str]:
    """Return the commands that some CI system or terminal takes from ``text``, with their lines."""
    result = []
    for line in re.split(
        r"\r\n|[\r\n\v\f\x85\u2028\u2029]", text.replace("\r\n", "\n")
    ):
        read = _IGNORED.sub("", line)
        result += [
            f"{system}: {line!r}"
            for system, form in _ANYWHERE.items()
            if form.search(read)
        ]
        if _GITHUB.match(read.lstrip()):
            result.append(f"github: {line!r}")
    return result
