"""The page of ``kbrel compare``: what it shows, how large it is, and that data never become markup."""

import json
import re
from dataclasses import replace

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.cli.compare.models import (
    ComparedModel,
    case_of,
    correlated_points,
    figure_tables,
    size_in,
)
from pytest_kbrel.cli.compare.side_by_side import side_by_side
from pytest_kbrel.reports.html.comparison import (
    MOST_MODELS,
    comparison_html,
    size_text,
)
from pytest_kbrel.reports.html.page import LARGEST, report_html
from tests.made_comparisons import comparison_of
from tests.reports import conftest as runs
from tests.reports.test_compare import three
from tests.reports.test_html import Page


def good():
    cases = tuple(
        replace(
            case,
            verdict="pass",
            gates=tuple(replace(gate, verdict="pass") for gate in case.gates),
        )
        for case in runs.small().cases
    )
    return replace(runs.small(), cases=cases[::-1], model=runs.fingerprint("good"))


def rows(page):
    return re.findall(r'<tbody class="case" id="([^"]*)"', page)


def test_only_verdicts_have_colours():
    page = comparison_html(comparison_of({"a": good(), "b": runs.small()}))
    words = re.findall(r'<span class="word ([a-z-]*)">([a-z ]*)</span>', page)
    assert {(tone, said) for tone, said in words} == {
        ("fail", "fail"),
        ("pass", "pass"),
        ("inconclusive", "inconclusive"),
    }
    # A drop in a row that passed is grey as any difference.
    assert page.count("<strong>accuracy 0.512") == 1
    assert re.findall(r'class="delta[^"]+"', page) == []


def test_the_page_is_the_reports_in_policy_styles_and_script():
    page, one = (
        comparison_html(comparison_of({"a": runs.small()})),
        report_html(runs.small()),
    )
    for start, end in (
        ("<meta http-equiv", ">"),
        ("<style>", "</style>"),
        ("<script>", "</script>"),
    ):
        assert (
            page.partition(start)[2].partition(end)[0]
            == one.partition(start)[2].partition(end)[0]
        )
    assert "default-src 'none'" in page
    tags = Page(page)
    assert tags.tags.count("script") == 1
    assert not {"src", "onclick"} & tags.attributes
    assert "link" not in tags.tags


def test_names_of_models_and_all_else_are_text():
    run = runs.hostile()
    cases = [replace(case, label=runs.HOSTILE[8]) for case in run.cases]
    run = replace(run, cases=tuple(cases))
    names = dict.fromkeys((runs.HOSTILE[0], runs.HOSTILE[2], runs.HOSTILE[8]), run)
    page = comparison_html(comparison_of(names, first=runs.HOSTILE[6]))
    tags = Page(page)
    assert (tags.tags.count("script"), tags.tags.count("img")) == (1, 0)
    assert "<script>alert(1)</script>" in "".join(tags.text)
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e\u2066]", page) == []
    assert not any(name.startswith("on") for name in tags.attributes)


@pytest.mark.parametrize(("cases", "models"), [(500, 5), (40, 150)])
@pytest.mark.slow
def test_it_is_below_3_mb_whatever_the_run(cases, models):
    run = runs.many(cases)
    candidates = {
        f"{'long/' * 20}{at}": replace(
            run,
            cases=tuple(
                replace(
                    case,
                    metrics=tuple(
                        replace(value, value=(value.value or 0) + at / 999)
                        for value in case.metrics
                    ),
                )
                for case in run.cases
            ),
        )
        for at in range(models - 1)
    }
    page = comparison_html(comparison_of(candidates))
    assert len(page.encode()) < LARGEST
    assert len(rows(page)) == cases
    assert page.count("did not fit") < cases
    head = page.partition('<thead><tr><th scope="col" aria-sort')[2].partition(
        "</thead>"
    )[0]
    assert head.count('class="sort"') == 2 + min(models, MOST_MODELS)
    assert (f"{models - MOST_MODELS} more columns" in page) == (models > MOST_MODELS)


def of_sizes(*names, case="monitor[overall]"):
    models = [
        ComparedModel(
            name=f"published/x/{name}",
            about="",
            cases={
                ("", case): case_of(
                    ("", case),
                    {"monitor": 0.5 - 0.01 * at, "accuracy": 0.3 + 0.01 * at * at},
                )
            },
            spec=name,
            parameters=size_in(name),
            family=name.partition("-")[0],
        )
        for at, name in enumerate(names)
    ]
    return side_by_side(
        models, figure_tables(models), correlated_points(models), {}, {}
    )


def test_figures_are_drawn_against_each_other_and_against_the_size():
    page = comparison_html(of_sizes("a-1b", "a-7b", "b-7b", "c"))
    assert re.findall(r'<figure id="plot-([^"]*)"', page) == [
        "scatter-1",
        "scale-1",
        "scale-2",
    ]
    scatter, scale = (
        page.partition(f'id="plot-{name}"')[2] for name in ("scatter-1", "scale-1")
    )
    assert scatter.partition("</svg>")[0].count("<circle") == 4
    assert "Pearson -0.958 (p = 0.042), Spearman -1.000 (p = 0.083), n = 4" in scatter
    assert "<title>4 c: MONITOR 0.470, accuracy 0.390</title>" in scatter
    drawing = scale.partition("</svg>")[0]
    # One family has two sizes, and of one model the size is not known.
    assert (drawing.count("<circle"), drawing.count('class="trace"')) == (3, 1)
    assert "1B" in drawing
    assert "7,000,000,000" in scale.partition("</figure>")[0]


@pytest.mark.parametrize(
    ("parameters", "text"), [(7e9, "7B"), (1_663_616, "1.66M"), (12, "12")]
)
def test_sizes_are_written_as_in_names(parameters, text):
    assert size_text(parameters) == text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    three(tmp_path, [(0.1, 0.9), (0.2, 0.7), (0.4, 0.6)])
    return tmp_path


@pytest.mark.parametrize(("flags", "file"), [(("--html",), "kbrel-compare.html")])
def test_the_page_is_written_beside_what_is_printed(flags, file, folder, capsys):
    assert main(["compare", "r0", "r1", "r2", *flags]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"page written to {file}"
    assert rows((folder / file).read_text(encoding="utf-8")) == ["monitor-P37"]
    (folder / file).unlink()
    assert main(["compare", "r0", "r1", "r2", "--json", *flags]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["models"]) == 3
    assert (folder / file).is_file()
    assert main(["compare", "r0", "r1", "r2", "--json", *flags]) == 2
    assert main(["compare", "r0", "r1", "r2", "--force", *flags]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("r0", "r1", "--html", "r2"),
            "--html r2: is a run or a folder; allowed: the name of another file",
        ),
        (
            ("r0", "r1", "--html", "r2/report.json"),
            "--html r2/report.json: is a run or a folder; allowed",
        ),
        (
            ("r0", "r1", "--json", "x", "--html", "x"),
            "--html x: is the file of --json as well",
        ),
        *(
            (("r0", "r1", flag, "notes.md"), "notes.md: exists already; name another")
            for flag in ("--json", "--html")
        ),
        (
            ("a.csv", "a.csv", "--html"),
            "--html: found a.csv of another tool, which has no page",
        ),
    ],
)
def test_what_cannot_be_written_is_one_line(arguments, message, folder, capsys):
    (folder / "a.csv").write_text("id,score\n1,1\n")
    (folder / "notes.md").write_text("mine")
    assert main(["compare", *arguments]) == 2
    assert (folder / "notes.md").read_text() == "mine"
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
