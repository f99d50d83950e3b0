"""Mutants of a module: mutmut's changes, one at a time, to each of its functions.

mutmut finds what to change. It leaves functions with a decorator alone, since it adds its mutants to the
source; here they take the place of a function's code while the tests run (mutants_tested.py), so that
functions with a cache and properties have mutants too. What a module or a class computes outside its
functions has none.

Left out is what no test can notice where the tests run: ``strict`` of a ``zip`` over sequences that are
equally long anyhow, and an encoding where UTF-8 is the default.
"""

from __future__ import annotations
import __future__

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import (
    MutationVisitor,
    OuterFunctionProvider,
    deep_replace,
)
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

HEADED = (
    cst.If,
    cst.While,
    cst.For,
    cst.With,
    cst.Match,
    cst.MatchCase,
    cst.ExceptHandler,
    cst.FunctionDef,
)
# What a function is at run time: its code, and the defaults of its parameters.
Body = tuple[CodeType, Any, Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: where it is, the function before and after it, and the lines of its statement."""

    module: str
    function: str
    number: int
    line: int
    lines: tuple[int, int]
    before: str
    after: str

    @property
    def name(self) -> str:
        """Return the dotted name of the function, and the number of the change in it."""
        return f"{self.module}.{self.function}:{self.number}"

    @property
    def digest(self) -> str:
        """Return what stays the same as long as the function does."""
        return hashlib.sha256(
            f"{self.function}\0{self.before}\0{self.after}".encode()
        ).hexdigest()[:16]


def mutants_of(path: Path, module: str) -> list[Mutant]:
    """Return the mutants of a file, function by function."""
    source = path.read_bytes()
    rows = source.splitlines()
    tree = cst.parse_module(source)
    # Nothing below alters the tree, and a copy of it takes as long as all the rest.
    wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
    visitor = Changes()
    wrapper.visit(visitor)
    owners = {
        method: f"{item.name.value}."
        for item in tree.body
        if isinstance(item, cst.ClassDef)
        for method in item.body.body
    }
    mutants: list[Mutant] = []
    numbers: dict[str, int] = {}
    spans = wrapper.resolve(ByteSpanPositionProvider)
    for function, old, new, line, lines in visitor.changes:
        name = f"{owners.get(function, '')}{function.name.value}"
        start, end = within(spans[function])
        start = source.rfind(b"\n", 0, start) + 1
        old_start, old_end = within(spans[old])
        row = rows[lines[0] - 1]
        was, is_now = (indented(tree.code_for_node(node), row) for node in (old, new))
        if source[old_start:old_end] == was:
            after = source[start:old_start] + is_now + source[old_end:end]
        else:
            # The place of a node does not always cover all of it.
            bare = function.with_changes(
                decorators=(), leading_lines=(), lines_after_decorators=()
            )
            text = tree.code_for_node(deep_replace(bare, old, new)).rstrip("\n")
            after = indent_of(source[start:end]) + indented(text, source[start:end])
        before = source[start:end]
        if after != before:
            numbers[name] = numbers.get(name, 0) + 1
            mutants.append(
                Mutant(
                    module,
                    name,
                    numbers[name],
                    line,
                    lines,
                    before.decode(),
                    after.decode(),
                )
            )
    return mutants


def indent_of(text: bytes) -> bytes:
    """Return the white space that a text begins with."""
    return text[: len(text) - len(text.lstrip())]


def indented(text: str, like: bytes) -> bytes:
    """Return what a text over several lines is in a block that is indented like a given line."""
    first, *others = text.encode().split(b"\n")
    return b"\n".join(
        [first, *(indent_of(like) + row if row else row for row in others)]
    )


def within(span: Any) -> tuple[int, int]:
    """Return first byte and the one after the last."""
    return span.start, span.start + span.length


def body_of(mutant: Mutant, text: str, names: Mapping[str, Any]) -> Body:
    """Return what ``text``, the mutant's function before or after, is in a module that has ``names``."""
    owner, _, name = mutant.function.rpartition(".")
    # In its class, for names that Python mangles, and for ``super()``.
    whole = f"class {owner}:\n{text}" if owner else text
    code = compile(
        whole, f"<{mutant.name}>", "exec", __future__.annotations.compiler_flag, True
    )
    space = dict(names)
    exec(code, space)
    made = vars(space[owner])[name] if owner else space[name]
    assert isinstance(made, FunctionType)
    return made.__code__, made.__defaults__, made.__kwdefaults__


class Changes(MutationVisitor):
    """Collects mutmut's changes with the lines of the statement that each is in."""

    METADATA_DEPENDENCIES = (PositionProvider, OuterFunctionProvider)

    def __init__(self) -> None:
        super().__init__(mutation_operators, IgnoredCode(set(), set(), set()))
        self.changes: list[
            tuple[cst.FunctionDef, cst.CSTNode, cst.CSTNode, int, tuple[int, int]]
        ] = []
        self._statements: list[tuple[cst.CSTNode, tuple[int, int]]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Record the statement, and whether what is in it may change."""
        if isinstance(node, (cst.SimpleStatementLine, *HEADED)):
            self._statements.append((node, self._lines(node)))
        return not (isinstance(node, cst.Arg) and is_moot(node)) and bool(
            super().on_visit(node)
        )

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Forget the statement that ends."""
        super().on_leave(original_node)
        if self._statements and self._statements[-1][0] is original_node:
            self._statements.pop()

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef):
            node = node.with_changes(decorators=())
        return bool(super()._skip_node_and_children(node))

    def _create_mutations(self, node: cst.CSTNode) -> None:
        before = len(self.mutations)
        super()._create_mutations(node)
        for made in self.mutations[before:]:
            function = made.contained_by_top_level_function
            if isinstance(function, cst.FunctionDef) and not any(
                map(is_moot, taken(node, made.mutated_node))
            ):
                line = self.get_metadata(PositionProvider, node).start.line
                self.changes.append(
                    (function, node, made.mutated_node, line, self._statements[-1][1])
                )

    def _lines(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return first and last line of a statement, or of what stands above its block."""
        position = self.get_metadata(PositionProvider, node)
        # Where a function is defined no test's line runs; its defaults matter in all of it.
        if isinstance(node, (cst.SimpleStatementLine, cst.FunctionDef)):
            return position.start.line, position.end.line
        inner = node.cases if isinstance(node, cst.Match) else node.body.body  # type: ignore[attr-defined]
        first = self.get_metadata(PositionProvider, inner[0]).start.line
        return position.start.line, max(position.start.line, first - 1)


def taken(node: cst.CSTNode, changed: cst.CSTNode) -> Iterator[cst.Arg]:
    """Yield the arguments that a changed call lacks."""
    if isinstance(node, cst.Call) and isinstance(changed, cst.Call):
        remaining = {id(arg) for arg in changed.args}
        yield from (arg for arg in node.args if id(arg) not in remaining)


def is_moot(arg: cst.Arg) -> bool:
    """Return True if no test can notice that an argument is another or missing."""
    if arg.keyword is not None and arg.keyword.value == "strict":
        return True
    return (
        isinstance(arg.value, cst.SimpleString) and arg.value.evaluated_value == "utf-8"
    )
