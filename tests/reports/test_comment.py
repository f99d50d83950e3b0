import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_kbrel.cli import main
from pytest_kbrel.reports.comment import LARGEST, comment_markdown, comment_text
from pytest_kbrel.reports.json_report import report_dict, write_json
from pytest_kbrel.reports.recorded import read_run
from tests.made_cases import made_result
from tests.reports.conftest import HOSTILE, change, hostile, many, rich

OWN = re.compile(r"<!-- pytest-kbrel -->|</?details>|</?summary>|<br>")
VERDICTS = (
    "fail",
    "invalid",
    "not comparable",
    "no baseline",
    "inconclusive",
    "pass",
    "not run",
)


def characters(text):
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize("make", [rich, hostile, lambda: many(3)])
def test_a_report_is_read_as_the_run_that_it_was_written_from(make, tmp_path):
    run = replace(make(), blessed="2025-12-31T00:00:00+00:00", comparisons=7)
    write_json(run, tmp_path / "report.json")
    again = read_run(tmp_path)
    assert report_dict(again) == json.loads(
        (tmp_path / "report.json").read_text(encoding="utf-8")
    )
    assert [case.id for case in again.cases] == [
        case.id for case in sorted(run.cases, key=node_id)
    ]


def node_id(case):
    return case.nodeid


@pytest.mark.parametrize(
    ("blessed", "words"),
    [
        (
            "2026-01-02T01:00:00+00:00",
            "**reference** (blessed on the same day, 2026-01-02)",
        ),
        ("2026-01-01T01:00:00+00:00", "(blessed 1 day before, 2026-01-01)"),
        (
            "2026-01-01T22:30:00-02:00",
            "**reference** (blessed on the same day, 2026-01-02)",
        ),
        ("0001-01-01T00:00:00+14:00", "against baseline **reference**: "),
        ("yesterday", "against baseline **reference**: "),
    ],
)
def test_the_age_of_the_baseline(blessed, words, small_run):
    assert words in comment_markdown(replace(small_run, blessed=blessed))


def test_digests_are_left_out(small_run):
    digests = ("weights_digest ('0a1b' and '2c3d')", "tokenizer_digest ('4e' and '5f')")
    text = comment_markdown(replace(small_run, differences=digests))
    assert re.findall("differs from the baseline in: (.*)", text) == ["tokenizer"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("@someone and a@b.example", "&#64;&#8203;someone and a&#64;&#8203;b.example"),
        ("at @ alone", "at &#64; alone"),
        (
            "#12 and GH-7 and org/repo#3",
            "\\#&#8203;12 and GH-&#8203;7 and org/repo#&#8203;3",
        ),
        ("https://e.example", r"https:&#8203;\/\/e.example"),
        ("C# is fine", "C# is fine"),
    ],
)
def test_nobody_is_mentioned_and_nothing_is_linked(text, shown):
    assert comment_text(text) == shown


@pytest.mark.parametrize("make", [rich, hostile, lambda: many(400)])
def test_a_comment_is_short_enough_and_has_no_html_but_its_own(make):
    text = comment_markdown(make(), link="https://ci.example/" + "x" * 400)
    assert characters(text) <= LARGEST
    assert "<" not in OWN.sub("", text)
    assert text.count("<details>") == text.count("</details>") > 0
    assert "\x1b" not in text
    assert text.endswith(").\n")


def test_what_does_not_fit_is_counted(small_run):
    lost = tuple(
        replace(
            change(at),
            fact_id=f"f{at}",
            question=f"{at} " + "@" * 150,
            old_answer="@" * 150,
        )
        for at in range(90)
    )
    run = replace(
        small_run, cases=(replace(small_run.cases[0], lost=lost), *small_run.cases[1:])
    )
    text = comment_markdown(run)
    cut = re.search(
        r"^and (\d+) more facts in `report.html`$", text, flags=re.MULTILINE
    )
    assert cut is not None
    shown = sum(re.match(r"\| \d", line) is not None for line in text.split("\n"))
    assert shown > 10
    assert shown + int(cut[1]) == 90
    assert LARGEST - 6_000 < characters(text) <= LARGEST


TEXT = st.text(max_size=300) | st.sampled_from(HOSTILE) | st.just("@x <b>|" * 60)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(VERDICTS), TEXT, TEXT), max_size=12),
    st.lists(TEXT, max_size=20),
)
def test_any_run_stays_within_the_limit(cases, problems):
    template = rich()
    results = tuple(
        made_result(
            f"{at}.kb.yaml::head_to_tail[{name}]",
            verdict,
            errors=(why,),
            lost=tuple(
                replace(change(i), fact_id=f"{at}{i}{name}", question=why)
                for i in range(30)
            ),
            gates=template.cases[0].gates,
        )
        for at, (verdict, name, why) in enumerate(cases)
    )
    run = replace(
        template,
        cases=results,
        problems=tuple(problems),
        baseline="",
        model=None,
        differences=(),
    )
    text = comment_markdown(run)
    assert characters(text) <= LARGEST
    assert "<" not in OWN.sub("", text)


def test_figures_that_no_run_writes_are_an_error(small_run, tmp_path, capsys):
    folder = run_of(tmp_path, small_run)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    changes = {"baseline": [None], "cases": [{**report["cases"][0], "verdict": "fine"}]}
    for key, content in changes.items():
        text = json.dumps({**report, key: content})
        (tmp_path / "report.json").write_text(text, encoding="utf-8")
        assert main(["comment", folder]) == 2
        assert "cannot be read as a report: " in capsys.readouterr().err


def run_of(tmp_path, run):
    write_json(run, tmp_path / "report.json")
    return str(tmp_path)


def test_the_command_prints_or_writes(small_run, tmp_path, capsys):
    folder = run_of(tmp_path, small_run)
    assert main(["comment", folder, "--name=a"]) == 0
    shown = capsys.readouterr().out
    assert shown == comment_markdown(read_run(tmp_path), name="a")
    output = tmp_path / "comment.md"
    assert main(["comment", folder, "--name=a", f"--output={output}"]) == 0
    assert output.read_text(encoding="utf-8") == shown
    assert main(["comment", folder, f"--output={output}"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["comment", folder, f"--output={output}", "--force"]) == 0
    assert output.read_text(encoding="utf-8").startswith("<!-- pytest-kbrel -->\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "--name=a b"], "--name: found 'a b'; allowed: up to 60 letters"),
        (
            ["x", "--link=javascript:x"],
            "--link: found 'javascript:x'; allowed: an address",
        ),
        (
            ["x", "--commit=main"],
            "--commit: found 'main'; allowed: 7 to 64 hexadecimal digits",
        ),
        (["nowhere"], "nowhere: there is no such report"),
    ],
)
def test_bad_input_is_refused_with_what_is_allowed(
    arguments, message, capsys, tmp_path, monkeypatch, small_run
):
    run_of(tmp_path / "x", small_run)
    monkeypatch.chdir(tmp_path)
    assert main(["comment", *arguments]) == 2
    assert message in capsys.readouterr().err
