"""The page of ``kbrel compare``: what it shows, how large it is, and that data never become markup."""

import json
import re
from dataclasses import replace

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.reports.html.comparison import MOST_MODELS, comparison_html
from pytest_kbrel.reports.html.page import LARGEST, report_html
from pytest_kbrel.reports.json_report import write_json
from tests.made_comparisons import comparison_of
from tests.reports import conftest as runs
from tests.reports.test_html import Page


def test_only_verdicts_have_colours_and_the_worst_case_is_first():
    page = comparison_html(comparison_of({"b": runs.small()}))
    words = re.findall(r'<span class="word ([a-z-]*)">([a-z ]*)</span>', page)
    assert {tone for tone, _ in words} == {"fail", "inconclusive", "pass"}
    verdicts = re.findall(r'<tbody class="case" id="[^"]*" data-verdict="(\w*)"', page)
    assert verdicts[1] == "fail"
    # A drop in a row that passed is grey as any difference.
    assert re.findall(r'class="delta[^"]+"', page) == []


def test_names_are_text_in_the_reports_policy_styles_and_script():
    run = runs.hostile()
    cases = [replace(case, label=runs.HOSTILE[8]) for case in run.cases]
    run = replace(run, cases=tuple(cases))
    names = dict.fromkeys((runs.HOSTILE[0], runs.HOSTILE[2], runs.HOSTILE[8]), run)
    page = comparison_html(comparison_of(names, first=runs.HOSTILE[6]))
    tags, one = Page(page), report_html(runs.small())
    for start, end in (("<meta http-equiv", ">"), ("<script>", "</script>")):
        parts = [of.partition(start)[2].partition(end)[0] for of in (page, one)]
        assert parts[0] == parts[1] != ""
    assert (tags.tags.count("script"), tags.tags.count("img")) == (1, 0)
    assert "<script>alert(1)</script>" in "".join(tags.text)
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e\u2066]", page) == []
    assert not any(name.startswith("on") for name in tags.attributes)


@pytest.mark.slow
def test_it_is_below_3_mb_whatever_the_run():
    cases, models = 40, MOST_MODELS + 2
    run = runs.many(cases)
    page = comparison_html(
        comparison_of({f"{'long/' * 20}{at}": run for at in range(models - 1)})
    )
    assert len(page.encode()) < LARGEST
    assert page.count('<tbody class="case"') == cases
    assert page.count("did not fit") < cases
    assert "2 more columns" in page


def test_models_of_a_paper_are_drawn_by_their_figures_and_sizes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "published/monitor", "--html"]) == 0
    page = (tmp_path / "kbrel-compare.html").read_text(encoding="utf-8")
    scatter, scale = (
        page.partition(f'id="plot-{name}"')[2].partition("</figure>")[0]
        for name in ("scatter", "scale")
    )
    assert scatter.count("<circle") == 12
    assert "Pearson -0.846 (p &lt; 0.001), Spearman -0.881" in scatter
    assert "bloomz-7b1: MONITOR 0.664, accuracy 0.362</title>" in scatter
    # Of two models the size is not known; bloomz and vicuna have several.
    assert (scale.count("<circle"), scale.count('class="trace"')) == (10, 2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("r0", "r1"):
        (tmp_path / name).mkdir()
        write_json(runs.small(), tmp_path / name / "report.json")
    return tmp_path


def test_the_page_is_written_beside_what_is_printed(folder, capsys):
    page = folder / "kbrel-compare.html"
    assert main(["compare", "r0", "r1", "--html"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "page written to kbrel-compare.html"
    assert '<tbody class="case"' in page.read_text(encoding="utf-8")
    assert main(["compare", "r0", "r1", "--json", "--html"]) == 2
    capsys.readouterr()
    assert main(["compare", "r0", "r1", "--json", "--html", "--force"]) == 0
    assert len(json.loads(capsys.readouterr().out)["models"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("r0 r1 --html r1", "--html r1: is a run or a folder; allowed: the name of an"),
        ("r0 r1 --html r1/report.json", "r1/report.json: is a run or a folder"),
        ("r0 r1 --json x --html x", "--html x: is the file of --json as well"),
        ("r0 r1 --json notes.md", "notes.md: exists already; name another"),
        ("r0 r1 --html notes.md", "notes.md: exists already; name another"),
        (
            "a.csv a.csv --html",
            "--html: found a.csv of another tool, which has no page",
        ),
        ("--json a.csv a.csv a.csv", "--json a.csv: is a run"),
    ],
)
def test_what_cannot_be_written_is_one_line(arguments, message, folder, capsys):
    (folder / "a.csv").write_text("id,score\n1,1\n")
    (folder / "notes.md").write_text("mine")
    assert main(["compare", *arguments.split()]) == 2
    assert (folder / "notes.md").read_text() == "mine"
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
