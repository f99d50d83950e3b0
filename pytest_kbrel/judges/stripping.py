"""Stripping of what models write around an answer: thoughts, special tokens, role names, mark-up, a next turn."""

from __future__ import annotations

import html
import re

from pytest_kbrel.judges.words import LONGEST

_ROLE = r"(?:assistant|ai|model|bot|response|final answer|answer|a)"
# A sign that a text must have, a pattern and what it becomes, in this order. Repeats are bounded: a hostile answer
# of line ends alone costs no more than its length.
_STRIPPED = tuple(
    (sign, re.compile(pattern, re.IGNORECASE | re.DOTALL), by)
    for sign, pattern, by in (
        # Thoughts; some chat templates write the opening tag themselves.
        ("<", r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", " "),
        ("</", r"\A.*</(?:think|thinking|thought|reasoning)>", " "),
        # The turn of somebody else: told by special tokens, a name in front of a line, or a next question.
        (
            "<|",
            r"(?<=\S)\s*<\|(?:im_start\|>|start_header_id\|>|)\s*(?:user|human|system)\b.*",
            "",
        ),
        (
            "\n",
            r"(?<=\S)\s{0,9}\n\s{0,9}(?:user|human|q|question)\s{0,5}\d{0,4}\s{0,5}[:.].*",
            "",
        ),
        # A role between special tokens, then special tokens of other tokenizers and tags.
        (
            "<",
            r"<\|(?:im_start|start_header_id)\|>\s*\w{1,12}(?=\s|<)|<start_of_turn>\w{1,12}",
            " ",
        ),
        ("<", r"<\|[\w▁ ]{1,30}\|>|<[｜|][^<>]{1,30}[｜|]>|<0x[0-9a-f]{2}>", " "),
        (
            "<",
            r"</?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|final_answer|final|answer|response|output|result"
            r"|verdict|a|b|i|u|p|q|em|strong|br|hr|div|span|sub|sup|code|pre|ul|ol|li|h[1-6])\s?/?>",
            " ",
        ),
        ("[", r"\[/?(?:INST|EOS|BOS|PAD|\d{1,3})\]", " "),
        ("", r"[ĊĠ▁]+", " "),
        # LaTeX and Markdown.
        ("\\", r"\\(?:boxed|text|textbf|mathrm|mathbf)(?=\{)", ""),
        ("$", r"\$([^$\n]{1,60})\$(?!\d)", r"\1"),
        ("](", r"\[([^\[\]\n]{1,200})\]\([^()\s]{1,300}\)", r"\1"),
        (
            "",
            rf"\A[\s#>*]*(?:(?:the|my|final|short|correct)\s+)*{_ROLE}[\s*]*[:=][\s*]*",
            "",
        ),
        ("\n", r"\A\s*assistant\s*\n", ""),
    )
)


def strip_wrapping(answer: str) -> str:
    """Return an answer without what models put around it."""
    answer = html.unescape(answer) if "&" in answer else answer
    for sign, pattern, by in _STRIPPED:
        if sign in answer:
            answer = pattern.sub(by, answer)
    return answer.strip()[:LONGEST]
