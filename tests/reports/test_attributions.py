import re
from dataclasses import replace

from pytest_kbrel.records import Attribution
from pytest_kbrel.reports.html.page import report_html
from pytest_kbrel.reports.markdown import summary_markdown
from pytest_kbrel.reports.phrases import attribution_lines
from tests.reports.conftest import HOSTILE


def attribution(role="negative2:0", **more):
    given = {
        "fact_id": "P36-FR",
        "role": role,
        "prompt": "Oslo. What is the capital of France?",
        "target": "Paris",
        "tokens": ("<s>", " Os", "lo", ".", " France", " "),
        "scores": (0.0, -1.5, -0.25, 0.1, 3.0, 0.5),
        "log_probability": -0.25,
        "error": 0.001,
    }
    return Attribution(**{**given, **more})


def test_hostile_tokens_stay_text(small_run):
    hostile = attribution(
        tokens=HOSTILE,
        scores=(0.5,) * len(HOSTILE),
        target=HOSTILE[0],
        prompt=HOSTILE[8],
        fact_id=HOSTILE[8],
        role=HOSTILE[0],
    )
    run = replace(
        small_run, cases=(replace(small_run.cases[0], attributions=(hostile,)),)
    )
    page = report_html(run)
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "\x1b" not in page + summary_markdown(run)
    assert "<script" not in summary_markdown(run)
    assert not any("\n" in line for line in attribution_lines(run.cases[0]))


def test_a_page_of_many_explanations_stays_small(small_run):
    many = tuple(
        attribution(fact_id=f"f{number}", tokens=("word",) * 500, scores=(0.1,) * 500)
        for number in range(40)
    )
    page = report_html(
        replace(small_run, cases=(replace(small_run.cases[0], attributions=many),))
    )
    assert len(page.encode()) < 1_000_000
    assert re.search(r"<p>\d+ more facts in report\.json\.</p>", page)
