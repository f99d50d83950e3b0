"""Question sets by the rules of Head-to-Tail, from dumps of any size (Sun et al. 2023, arXiv 2308.10168).

The work is done by DuckDB within a limit of memory, and on disk beyond it.
"""

from __future__ import annotations

from pytest_kbrel.facts.question_set.build import Engine, Manifest, Rules, build_question_set
from pytest_kbrel.facts.question_set.draw import Filters
from pytest_kbrel.facts.question_set.dump import SUFFIXES, Columns, Dump, columns_of, format_of
from pytest_kbrel.facts.question_set.templates import Template, read_templates

__all__ = [
    "SUFFIXES",
    "Columns",
    "Dump",
    "Engine",
    "Filters",
    "Manifest",
    "Rules",
    "Template",
    "build_question_set",
    "columns_of",
    "format_of",
    "read_templates",
]
