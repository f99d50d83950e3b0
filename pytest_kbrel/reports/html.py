"""``report.html``: the run as one plain page that needs nothing from outside and runs no script."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_kbrel.records import CaseResult, Change, Run
from pytest_kbrel.reports import selection
from pytest_kbrel.reports.attributions import attribution_page
from pytest_kbrel.reports.html_parts import (
    arrow,
    change_row,
    change_table,
    domain,
    figure,
    gate_item,
    metric_table,
    probe_table,
    text,
    word,
)
from pytest_kbrel.reports.html_style import STYLE
from pytest_kbrel.reports.text import count, number, p_value

SHOWN_FACTS = 50
SHOWN_ERRORS = 10
# What the details of all cases may take together, so that a page of a hundred cases stays below a megabyte.
_DETAIL_BYTES = 500_000

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
            *_tables(run),
            *_details(run),
            *attribution_page(run),
            *_all_figures(run),
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
    lost, gained = selection.changed(run)
    if lost or gained:
        worst = selection.worst(run)
        where = (
            f' Most in <span class="name">{text(selection.names(run)[worst.nodeid])}</span>.' if worst else ""
        )
        yield f"<p>{count(lost, 'fact')} lost, {gained} gained.{where}</p>"
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
        yield "chat template", "yes" if model.chat_template else "no"
    if judge := selection.judged_by(run):
        yield "judged by", judge
    yield "made", run.created
    yield "pytest-kbrel", run.kbrel_version
    yield "exit status", str(run.exit_status)


def _problems(run: Run) -> Iterator[str]:
    problems = [text(problem, 600) for problem in sorted(run.problems)]
    if not run.complete:
        problems.insert(0, "Partial run: not every case of its suites was selected and soundly decided.")
    if problems:
        yield "<h2>Problems</h2><ul>" + "".join(f"<li>{problem}</li>" for problem in problems) + "</ul>"


def _figures(run: Run) -> Iterator[str]:
    cases = selection.aggregates(run)
    if not cases:
        return
    names = selection.names(run)
    yield "<h2>Over all slices</h2>"
    for case in cases:
        yield f'<h3><span class="name">{text(names[case.nodeid])}</span> {word(case.verdict)}</h3>'
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
        yield probe_table(group)


def _details(run: Run) -> Iterator[str]:
    failing = selection.unsettled(run)
    moved = [case for case in selection.slices(run) if case.verdict == "pass" and (case.lost or case.gained)]
    share = _DETAIL_BYTES // max(1, len(failing) + len(moved))
    names = selection.names(run)
    for title, cases in (("Not passed", failing), ("Passed, with facts that changed", moved)):
        if cases:
            yield f"<h2>{title}</h2>"
        for at, case in enumerate(cases):
            is_open = " open" if at == 0 and cases is failing else ""
            changes = [count(len(case.lost), "fact") + " lost"] if case.lost else []
            changes += [f"{len(case.gained)} gained"] if case.gained else []
            yield (
                f"<details{is_open}><summary>{word(case.verdict)}"
                f'<span class="name">{text(names[case.nodeid])}</span>'
                f'<span class="soft small">{", ".join(changes)}</span></summary>'
            )
            yield from _case(case, run.baseline, share)
            yield "</details>"


def _case(case: CaseResult, baseline: str, share: int) -> Iterator[str]:
    gates = "".join(gate_item(case, gate, baseline) for gate in case.gates)
    errors = "".join(f"<li>error: {text(error, 300)}</li>" for error in case.errors[:SHOWN_ERRORS])
    if len(case.errors) > SHOWN_ERRORS:
        errors += f"<li>and {len(case.errors) - SHOWN_ERRORS} more</li>"
    if gates or errors:
        yield f"<ul>{gates}{errors}</ul>"
    figures = metric_table(case.metrics) if case.metrics else ""
    yield figures
    left = share - len(gates) - len(errors) - len(figures)
    for changes, what in ((case.lost, "lost"), (case.gained, "gained")):
        rows = _rows(changes, left)
        left -= sum(map(len, rows))
        if changes:
            shown = f", the first {len(rows)} of them" if len(rows) < len(changes) else ""
            yield change_table(f"{count(len(changes), 'fact')} {what}{shown}", rows)


def _rows(changes: tuple[Change, ...], room: int) -> list[str]:
    rows: list[str] = []
    for change in changes[:SHOWN_FACTS]:
        row = change_row(change)
        room -= len(row.encode("utf-8"))
        if room < 0 and rows:
            break
        rows.append(row)
    return rows


def _all_figures(run: Run) -> Iterator[str]:
    groups = selection.groups(run)
    if groups:
        yield "<h2>All figures</h2>"
    for group in groups:
        names = list(dict.fromkeys(value.name for case in group.cases for value in case.metrics))
        head = "".join(f'<th scope="col" class="num">{text(name)}</th>' for name in names)
        rows = ""
        for case, label in zip(group.cases, group.labels, strict=True):
            found = {value.name: number(value.value) for value in case.metrics}
            cells = "".join(f'<td class="num">{found.get(name, "")}</td>' for name in names)
            rows += f'<tr><th scope="row">{text(label)}</th>{cells}</tr>'
        yield (
            f'<details><summary>{group.title}</summary><div class="wide"><table class="small"><thead><tr>'
            f'<th scope="col">slice</th>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>'
        )


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
