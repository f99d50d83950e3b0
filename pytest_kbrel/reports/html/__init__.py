"""``report.html``: the run as one plain page that needs nothing from outside and runs no script."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_kbrel.records import Attribution, Change, MetricValue, Run
from pytest_kbrel.reports import formatting, phrases, view
from pytest_kbrel.reports.phrases import prompt_part, shown_token
from pytest_kbrel.reports.view import Group

if TYPE_CHECKING:
    from jinja2 import Environment

_LONGEST = 160
_LONGEST_PROMPT = 4000
# The strongest colour of a token: darker, and the letters on it would be hard to read.
_DARKEST = 0.45
Scale = tuple[float, float]


def report_html(run: Run) -> str:
    """Return the page of ``run``, self-contained; everything a model or a file says is escaped."""
    return render("report", run)


def render(template: str, run: Run) -> str:
    """Return a template filled with ``run``: the page (``report``) or one of its sections."""
    return environment().get_template(f"{template}.html.j2").render(page_data(run))


@functools.cache
def environment() -> Environment:
    """Return the environment of the templates: it escapes all text, and they see the filters below."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from jinja2.ext import Extension

    class Dense(Extension):
        def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
            """Drop the line breaks of a template with their indentation; a blank line is one line break."""
            return re.sub(r"\n\s*", lambda gap: "\n" if gap[0].count("\n") > 1 else "", source)

    made = Environment(
        loader=PackageLoader(__name__), autoescape=True, undefined=StrictUndefined, extensions=[Dense]
    )
    made.filters |= {
        "bound": formatting.bound,
        "line": lambda words, limit=_LONGEST: formatting.one_line(words, limit),
        "lines": _prompt_lines,
        "number": formatting.number,
        "p_value": formatting.p_value,
        "percent_of": _percent_of,
        "origin": view.origin,
        "count_of": formatting.count,
        "probability": view.probability,
        "signed": formatting.signed,
        "answer": formatting.answer_text,
        "tone": _tone,
        "expected": formatting.expected_text,
        "prompt_part": prompt_part,
    }
    made.globals |= {
        "allowed": phrases.allowed,
        "columns_of": _fact_columns,
        "difference": formatting.difference,
        "interval": formatting.interval,
        "metric": view.metric,
        "names_of": _names,
        "phrases": phrases,
        "size_limit": SizeLimit,
        "scale_of": scale_of,
        "tokens_of": _tokens,
    }
    return made


class SizeLimit:
    """Number of bytes (``remaining``) that lists on the page may still take."""

    def __init__(self, remaining: int) -> None:
        self.remaining = remaining

    def take(
        self, render: Callable[..., str], items: Iterable[Any], *more: Any, least: int = 1, most: int = 10**6
    ) -> list[str]:
        """Return ``render(item, *more)`` of the first items that fit, ``least`` to ``most`` of them."""
        parts: list[str] = []
        for item in islice(items, most):
            part = render(item, *more)
            size = len(part.encode("utf-8", "replace"))
            if len(parts) >= least and size > self.remaining:
                break
            parts.append(part)
            self.remaining -= size
        return parts


class _Column(NamedTuple):
    name: str
    better: str
    scale: Scale


class _FactColumns(NamedTuple):
    anchor: bool
    origin: bool


def page_data(run: Run) -> dict[str, Any]:
    """Return what the templates show of ``run``; an empty list has no section."""
    slices, ordered, groups = view.slices(run), view.ordered(run), view.groups(run)
    passed = [case for case in slices if case.verdict == "pass"]
    return {
        "run": run,
        "names": view.names(run),
        "verdict": view.verdict(run),
        "headline": view.headline(run),
        "against": view.baseline_note(run),
        "sentence": view.changes_headline(run),
        "open": view.not_excluded(run),
        "about": phrases.run_notes(run),
        "identity": _identity(run),
        "problems": [*filter(None, [phrases.partial_note(run)]), *sorted(run.problems)],
        "aggregates": view.aggregates(run),
        "moved": view.changed_facts(run),
        "waived": [case for case in ordered if case.waiver is not None],
        "groups": [(group, _columns(group)) for group in groups],
        # All that were not run have one and the same reason.
        "failing": [case for case in view.not_passed(run) if case.verdict != "not run"],
        "unrun": phrases.not_run_note(run),
        "moving": [case for case in passed if case.lost or case.gained],
        "attributed": [
            (case, [list(facts) for _, facts in groupby(case.attributions, lambda one: one.fact_id)])
            for case in slices
            if case.attributions
        ],
        "measured": [
            (group, _names(case.metrics for case in group.cases))
            for group in groups
            if any(case.metrics for case in group.cases)
        ],
        # The others show theirs among their details.
        "prompted": [case for case in passed if case.prompt and not (case.lost or case.gained)],
        "checked": [case for case in ordered if case.integrity],
        "correlated": view.correlation_pairs(run),
    }


def _identity(run: Run) -> Iterator[tuple[str, str]]:
    if (model := run.model) is not None:
        yield "architecture", model.architecture
        yield "parameters", f"{model.parameters:,}"
        yield "backend", f"{model.backend} {model.backend_version}".strip()
        yield "dtype, device", ", ".join(filter(None, (model.dtype, model.device)))
        yield "derived by", model.derived
        yield "weights", model.weights_digest[:16]
        yield "tokenizer", model.tokenizer_digest[:16]
        yield "quantisation", model.quantisation
        yield "decoding", model.decoding
        yield "prompts", "in the chat template" if model.chat_template else "raw"
        yield "said of prompts", model.prompting
    yield from view.helper_models(run)
    yield "made", run.created
    yield "pytest-kbrel", run.kbrel_version
    yield "exit status", str(run.exit_status)


def _columns(group: Group) -> list[_Column]:
    columns = []
    for name in group.metrics:
        values = [value for case in group.cases if (value := view.metric(case, name)) is not None]
        columns.append(_Column(name, values[0].better, scale_of(values)))
    return columns


def _names(records: Iterable[Iterable[Any]]) -> list[str]:
    """Return the names of the metrics or shares of several cases, each once."""
    return list(dict.fromkeys(record.name for of_case in records for record in of_case))


def _fact_columns(changes: Sequence[Change]) -> _FactColumns:
    """Return whether the anchor's probability is known of any of these facts, and where any is from."""
    return _FactColumns(any(map(view.probability, changes)), any(map(view.origin, changes)))


def scale_of(values: Iterable[MetricValue]) -> Scale:
    """Return the scale that bars of these values share: 0 to 1, and further only where values are."""
    ends = [end for v in values for end in (v.value, v.low, v.high, v.baseline) if end is not None]
    lowest, highest = min([0.0, *ends]), max([1.0, *ends])
    return (min(lowest, -1.0) if lowest < 0 else 0.0), highest


def _percent_of(point: float, scale: Scale) -> float:
    start, end = scale
    return 100 * (point - start) / (end - start)


def _tone(value: MetricValue) -> str:
    """Return whether a difference is better or worse; nothing where its interval has zero in it."""
    if value.delta_low is None or value.delta_high is None or value.delta_low <= 0 <= value.delta_high:
        return ""
    return " better" if (value.delta_low > 0) == (value.better == "higher") else " worse"


def _prompt_lines(prompt: str) -> str:
    lines = (formatting.one_line(line, _LONGEST_PROMPT) for line in prompt[:_LONGEST_PROMPT].split("\n"))
    return "\n".join(lines) + ("\n…" if len(prompt) > _LONGEST_PROMPT else "")


def _tokens(attribution: Attribution) -> Iterator[tuple[str, float, float]]:
    """Yield the tokens of a prompt with their scores and how dark they are."""
    strongest = max(map(abs, attribution.scores), default=0.0) or 1.0
    for token, score in zip(attribution.tokens, attribution.scores, strict=True):
        yield shown_token(token), score, _DARKEST * (abs(score) / strongest)
