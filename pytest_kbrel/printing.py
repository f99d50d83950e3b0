"""Text of models, servers and files as it may be printed: no keys, control characters or log commands.

CI systems read commands from what a job prints. A model's answer may hold one, and would then mark the step
as succeeded, set variables or hide what follows. What is printed for people goes through :func:`printable`;
what programs read (``report.json``, ``responses.jsonl``) keeps the text as it is.
"""

from __future__ import annotations

import re

from pytest_kbrel.redaction import redacted

# Zero-width joiners are part of Persian, Indic scripts and emoji, and move nothing on a screen.
HARMLESS_FORMAT = {"\u200c", "\u200d"}
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Comparisons of texts by the rules of a language ignore these, and so may the readers of logs.
_UNSEEN = "\u034f\u200c\u200d\ufe00-\ufe0f"
_COMMANDS = (
    # GitHub Actions, Gitea: ::error::text, behind blanks. A line may be broken before any word.
    (re.compile(rf"(^|\s)([{_UNSEEN}]*:)(?=[{_UNSEEN}]*:[{_UNSEEN}]*[A-Za-z_])", re.MULTILINE), r"\1\2 "),
    # Azure Pipelines ##vso[...] and ##[...], TeamCity ##teamcity[...], older GitHub Actions: in all places.
    (re.compile(rf"#(?=[{_UNSEEN}]*#[\w{_UNSEEN}]*\[)"), "# "),
    # Travis CI and GitLab fold a log at travis_fold:start:NAME and section_start:TIME:NAME.
    (re.compile(r"(travis_(?:fold|time)|section_(?:start|end))(?=:)", re.IGNORECASE), r"\1 "),
)
_CONTROLS = re.compile("[^\n\t\x20-\x7e]")


def visible(char: str) -> str:
    """Return a character, spelled out where it is a control, bidi or surrogate character."""
    import unicodedata

    if unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} or char in HARMLESS_FORMAT:
        return char
    code = ord(char)
    return _SHORT_ESCAPES.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def printable(text: str) -> str:
    """Return ``text`` as it may be printed: nearly the same to the eye, and no command to a terminal or CI.

    A blank breaks each log command (``# #vso[``, ``: :error``), and control characters but line breaks and
    tabs are spelled out. What was printable already stays as it is.
    """
    shown = _CONTROLS.sub(lambda found: visible(found[0]), redacted(text))
    for command, broken in _COMMANDS:
        shown = command.sub(broken, shown)
    return shown
