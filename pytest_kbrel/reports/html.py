"""``report.html``: the run as one plain page that needs nothing from outside and runs no script."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_kbrel.records import CaseResult, Run
from pytest_kbrel.reports import changed, notes, selection
from pytest_kbrel.reports.attributions import attribution_page
from pytest_kbrel.reports.html_changes import case_changes, changes_page
from pytest_kbrel.reports.html_checks import case_notes, checks_page, waivers_page
from pytest_kbrel.reports.html_parts import (
    arrow,
    domain,
    figure,
    folded_prompt,
    gate_item,
    left_out,
    metric_table,
    probe_table,
    text,
    within,
    word,
    word_of,
)
from pytest_kbrel.reports.html_style import STYLE
from pytest_kbrel.reports.text import count, number, p_value

SHOWN_ERRORS = 10
SHOWN_PROBLEMS = 50
# What the facts of all cases may take together, so that a page of a hundred cases stays below a megabyte.
_FACT_BYTES = 500_000
# What the rest may take: a page of thousands of cases stays below five megabytes.
_DETAIL_BYTES = 1_800_000
_TABLE_BYTES = 1_200_000
_FIGURE_BYTES = 400_000

# Escaping keeps scripts out; should it ever fail, the browser still runs and fetches nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_LEGEND = (
    '<p class="soft small"><span class="key range"></span>95 % interval <span class="key tick"></span>value'
    '<span class="key base"></span>baseline. Below the bar: the difference to the baseline, unpaired if '
    "published, coloured where its interval leaves out zero. ↑ higher is better, ↓ lower is better.</p>"
)


def report_html(run: Run) -> str:
    """Return the page of ``run``, self-contained; everything a model or a file says is escaped."""
    word_ = selection.verdict(run)
    title = f"Knowledge gates: {word_}" + (f" – {text(run.model.spec)}" if run.model else "")
    body = "\n".join(
        [
            *_header(run),
            *_problems(run),
            *_figures(run),
            *changes_page(run),
            *waivers_page(run),
            *_tables(run),
            *_details(run),
            *attribution_page(run),
            *_all_figures(run),
            *_prompts(run),
            *checks_page(run),
            *_correlations(run),
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _header(run: Run) -> Iterator[str]:
    yield f"<h1>Knowledge gates {word(selection.verdict(run))}</h1>"
    model = f"<b>{text(run.model.spec)}</b>" if run.model else "no model"
    named = f" against baseline <b>{text(run.baseline)}</b>{selection.against(run)}"
    against = named if run.baseline else ", without a baseline"
    yield f'<p class="lead">{model}{against}: {selection.headline(run)}.</p>'
    if said := changed.sentence(run):
        yield f'<p class="moved">{text(said, 300)}</p>'
    for note in notes.about(run):
        yield f'<p class="soft">{text(note, 600)}</p>'
    pairs = [(name, value) for name, value in _identity(run) if value]
    yield (
        "<dl>"
        + "".join(f"<div><dt>{name}</dt><dd>{text(value)}</dd></div>" for name, value in pairs)
        + "</dl>"
    )


def _identity(run: Run) -> Iterator[tuple[str, str]]:
    model = run.model
    if model is not None:
        yield "architecture", model.architecture
        yield "parameters", f"{model.parameters:,}"
        yield "backend", f"{model.backend} {model.backend_version}".strip()
        yield "dtype, device", ", ".join(part for part in (model.dtype, model.device) if part)
        yield "derived by", model.derived
        yield "weights", model.weights_digest[:16]
        yield "tokenizer", model.tokenizer_digest[:16]
        yield "quantisation", model.quantisation
        yield "decoding", model.decoding
        yield "prompts", "in the chat template" if model.chat_template else "raw"
        yield "said of prompts", model.prompting
    yield from selection.helped_by(run)
    yield "made", run.created
    yield "pytest-kbrel", run.kbrel_version
    yield "exit status", str(run.exit_status)


def _problems(run: Run) -> Iterator[str]:
    problems = [text(problem, 600) for problem in sorted(run.problems)]
    if partial := notes.partial(run):
        problems.insert(0, partial)
    if problems:
        items = "".join(f"<li>{problem}</li>" for problem in problems[:SHOWN_PROBLEMS])
        left = left_out(max(0, len(problems) - SHOWN_PROBLEMS), "problem")
        yield f"<h2>Problems</h2><ul>{items}</ul>{left}"


def _figures(run: Run) -> Iterator[str]:
    cases = selection.aggregates(run)
    if not cases:
        return
    names = selection.names(run)
    yield "<h2>Over all slices</h2>"
    for case in cases:
        pooled = ' <span class="soft small">all slices of the suite together</span>'
        yield (
            f'<h3><span class="name">{text(names[case.nodeid])}</span> {word_of(case)}'
            f"{pooled if case.probe == 'pooled' else ''}</h3>"
        )
        if why := notes.unmeasured(case):
            yield f'<p class="soft small">{text(why, 300)}</p>'
            continue
        yield '<div class="figures">'
        for value in case.metrics:
            shown = figure(value, domain([value]), with_interval=True)
            name = f"<header><b>{text(value.name)} {arrow(value.better)}</b></header>"
            yield f'<div class="figure">{name}{shown}</div>'
        yield "</div>"


def _tables(run: Run) -> Iterator[str]:
    groups = selection.groups(run)
    for at, group in enumerate(groups):
        yield f"<h2>{group.title}</h2>"
        if at == 0:
            yield _LEGEND
        yield probe_table(group, _TABLE_BYTES // len(groups))


def _details(run: Run) -> Iterator[str]:
    # All that were not run have one and the same reason.
    failing = [case for case in selection.unsettled(run) if case.verdict != "not run"]
    moved = [case for case in selection.slices(run) if case.verdict == "pass" and (case.lost or case.gained)]
    share = _FACT_BYTES // max(1, len(failing) + len(moved))
    room, names = _DETAIL_BYTES, selection.names(run)
    for title, cases in (("Not passed", failing), ("Passed, with facts that changed", moved)):
        unrun = notes.unrun(run) if title == "Not passed" else ""
        if not cases and not unrun:
            continue
        blocks = within(
            (
                _block(case, run, share, names[case.nodeid], title == "Not passed" and not at)
                for at, case in enumerate(cases)
            ),
            room,
        )
        room -= sum(map(len, blocks))
        yield f"<h2>{title}</h2>"
        yield from blocks
        yield left_out(len(cases) - len(blocks), "case")
        if unrun:
            yield f"<p>{unrun}</p>"


def _block(case: CaseResult, run: Run, share: int, name: str, is_open: bool) -> str:
    changes = [count(len(case.lost), "fact") + " lost"] if case.lost else []
    changes += [f"{len(case.gained)} gained"] if case.gained else []
    changes += ["waived"] if notes.is_waived(case, run) else []
    return (
        f"<details{' open' if is_open else ''}><summary>{word(case.verdict)}"
        f'<span class="name">{text(name)}</span>'
        f'<span class="soft small">{", ".join(changes)}</span></summary>'
        f"{''.join(_case(case, run, share))}</details>"
    )


def _case(case: CaseResult, run: Run, share: int) -> Iterator[str]:
    gates = "".join(gate_item(case, gate, run.baseline) for gate in case.gates)
    errors = "".join(f"<li>error: {text(error, 300)}</li>" for error in case.errors[:SHOWN_ERRORS])
    if len(case.errors) > SHOWN_ERRORS:
        errors += f"<li>and {len(case.errors) - SHOWN_ERRORS} more</li>"
    if gates or errors:
        yield f"<ul>{gates}{errors}</ul>"
    yield case_notes(case, run)
    figures = metric_table(case.metrics) if case.metrics else ""
    prompt = folded_prompt(case.prompt, "The first prompt, as the model read it")
    yield figures
    yield prompt
    left = share - len(gates) - len(errors) - len(figures) - len(prompt)
    for changes, what in ((case.lost, "lost"), (case.gained, "gained")):
        table, taken = case_changes(changes, what, left)
        left -= taken
        yield table


def _all_figures(run: Run) -> Iterator[str]:
    groups = [group for group in selection.groups(run) if any(case.metrics for case in group.cases)]
    if groups:
        yield "<h2>All figures</h2>"
    for group in groups:
        names = list(dict.fromkeys(value.name for case in group.cases for value in case.metrics))
        head = "".join(f'<th scope="col" class="num">{text(name)}</th>' for name in names)
        figures = [{value.name: number(value.value) for value in case.metrics} for case in group.cases]
        every = (
            f'<tr><th scope="row">{text(label)}</th>'
            + "".join(f'<td class="num">{found.get(name, "")}</td>' for name in names)
            + "</tr>"
            for found, label in zip(figures, group.labels, strict=True)
        )
        rows = within(every, _FIGURE_BYTES // len(groups))
        yield (
            f'<details><summary>{group.title}</summary><div class="wide"><table class="small"><thead><tr>'
            f'<th scope="col">{group.row}</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
            f"{left_out(len(group.cases) - len(rows), group.row)}</details>"
        )


def _prompts(run: Run) -> Iterator[str]:
    """Show the prompts of the cases that have no details of their own."""
    shown = [case for case in selection.slices(run) if case.verdict == "pass" and case.prompt]
    shown = [case for case in shown if not (case.lost or case.gained)]
    names = selection.names(run)
    blocks = within((folded_prompt(case.prompt, names[case.nodeid]) for case in shown), _FIGURE_BYTES)
    if blocks:
        yield "<h2>The first prompt of each case that passed, as the model read it</h2>"
        yield from blocks
        yield left_out(len(shown) - len(blocks), "prompt")


def _correlations(run: Run) -> Iterator[str]:
    pairs = selection.correlated(run)
    if not pairs:
        return
    rows = "".join(
        f'<tr><th scope="row">{text(pearson.x)}, {text(pearson.y)}</th><td class="num">{pearson.n}</td>'
        + "".join(f'<td class="num">{number(one.r)}</td><td>{text(p_value(one.p))}</td>' for one in pair)
        + "</tr>"
        for pair in pairs
        for pearson in pair[:1]
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("n", "Pearson r", "p", "Spearman r", "p"))
    yield (
        "<details><summary>Correlations over slices</summary>"
        f'<div class="wide"><table class="small"><thead><tr><th scope="col">figures</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )
