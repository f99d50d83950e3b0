"""Reports as text: what is hostile is harmless in them, what is too long is cut, and cases are told together."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_kbrel.cli import main
from pytest_kbrel.printing import cells
from pytest_kbrel.reports.json_report import read_run, write_json
from pytest_kbrel.reports.rendering import (
    LARGEST,
    comment_markdown,
    markdown_text,
    summary_markdown,
)
from pytest_kbrel.reports.terminal import failure_text, terminal_lines
from tests.reports.conftest import (
    HOSTILE,
    case,
    change,
    gate,
    hostile,
    many,
    metric,
    moved_fact,
    outcomes,
    overall,
    rich,
    small,
)

ACTIVE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
TAGS = re.compile("<!-- pytest-kbrel -->|</?(details|summary)>|<br>")


def texts(run, width=80, verbosity=0):
    return [text for text, _ in terminal_lines(run, width=width, verbosity=verbosity)]


def body(*found):
    lines = texts(replace(small(), cases=found))
    return lines[lines.index("") + 1 :]


@pytest.mark.parametrize("width", [*range(20, 110, 7), 200])
@pytest.mark.parametrize(
    "name", ["small_run", "rich_run", "hostile_run", "empty_run", "big_run"]
)
def test_no_line_is_too_wide_or_has_a_control_character(name, width, request):
    lines = texts(request.getfixturevalue(name), width, verbosity=1)
    for text in lines:
        assert cells(text) <= min(width, 100)
        assert not ACTIVE.search(text)
    if name == "small_run" and width > 40:
        # The verdict of a table's row is never cut, and MONITOR's figures never stand alone.
        assert any(re.match("  open-tail .* inconclusive$", text) for text in lines)
        head = next(text.split() for text in lines if text.split()[:1] == ["slice"])
        assert not {"monitor", "pfd"} & set(head) or {"accuracy", "anchor_prob"} <= set(
            head
        )


def test_hostile_text_in_a_failure_is_harmless():
    for one in hostile().cases:
        text = failure_text(one, baseline_name="\x1b[2J")
        assert not ACTIVE.search(text)
        assert len(text) < 20_000


def test_colours_are_those_of_verdicts():
    lines = dict(terminal_lines(rich(), width=100, verbosity=1))
    marks = {text.split()[0]: mark for text, mark in lines.items() if text[:2] == "  "}
    assert marks["P17"] == {}
    assert marks["open-tail"] == {"yellow": True}
    assert marks["P30"] == {"yellow": True}  # It is waived.
    assert lines[
        next(iter(text for text in lines if text.startswith("INCONCLUSIVE:")))
    ]["bold"]


def test_cases_of_one_cause_are_told_once_with_what_the_model_said():
    wrong = outcomes("", [()], label="wrong")
    slices = [
        case("monitor", f"P{at}", "invalid", (), label="country" if at == 1 else "",
             errors=(f"{at + 90} of 120 answers are cut short; allowed: at most 50%: raise it",),
             table=wrong)
        for at in range(1, 10)
    ]  # fmt: skip
    assert body(*slices) == [
        "INVALID  9 cases: monitor[P1 country], monitor[P2], monitor[P3] and 6 more",
        "    91 of 120 answers are cut short; allowed: at most 50%: raise it (figures of",
        "      the first)",
        "    such as: Q0 <b> a (right: Asia)",
    ]
    stopped = [case("monitor", f"P{at}", "not run", ()) for at in range(27)]
    assert body(*stopped) == [
        "NOT RUN  27 cases not run: the session stopped before them"
    ]
    different = [
        case("monitor", f"P{at}", "invalid", (), errors=("x" * (at + 1),))
        for at in range(12)
    ]
    lines = body(*different)
    assert sum(line.startswith("INVALID  ") for line in lines) == 8
    assert lines[-1] == "and 4 more cases that did not pass"


def test_an_overall_figure_shows_the_fact_that_moved_most():
    facts = (moved_fact(expected="Chile", now=0.1), moved_fact())
    members = [
        case("monitor", f"P{at}", "pass", (), moved=(of,))
        for at, of in enumerate(facts)
    ]
    rose = gate(metric="monitor", observed=0.2)
    over = overall("monitor", gates=(rose,), members=("monitor[P0]", "monitor[P1]"))
    assert body(*members, replace(over, verdict="fail"))[2:] == [
        "    such as, after a wrong context: Peru. On which continent is country 1?",
        "      Africa (right: Asia); probability of Asia 0.031, 0.982 after the right",
        "      answer; its IRD 0.012 to 0.633",
    ]


def test_a_failure_says_what_was_measured_of_how_many():
    for value, shown in (
        (metric("accuracy", None, note="no fact"), "nothing: no fact"),
        (metric("accuracy", 0.25, low=None, n=1), "0.250 on 1 of 120 facts"),
    ):
        one = case("monitor", "P1", "fail", (value,), gates=(gate(rule="min"),))
        assert failure_text(one, baseline_name="").splitlines()[1:] == [
            "  accuracy min 0.02: fail",
            f"    measured    {shown}",
            "    allowed     at least 0.02",
        ]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a | `b` *c* _d_ ~e~ $f$ back\\slash", r"a \| \`b\` \*c\* \_d\_ \~e\~ \$f\$ back\\slash"),
        ("<b>&amp;</b>", "&lt;b&gt;&amp;amp;&lt;/b&gt;"),
        ("![x](//e.example) www.e.example", r"!\[x\](//e.example) www\.e.example"),
        ("# no heading", r"\# no heading"),
        ("- no item - here", r"\- no item - here"),
        ("12) no item 1. here", r"12\) no item 1. here"),
        ("line\nbreak", r"line\\nbreak"),
        ("@someone and a@b, at @ alone", "&#64;&#8203;someone and a&#64;&#8203;b, at &#64; alone"),
        ("#12 and GH-7 and o/r#3", "\\#&#8203;12 and GH-&#8203;7 and o/r#&#8203;3"),
        ("https://e.example", r"https:&#8203;\/\/e.example"),
        ("Where is 1.5 C#-ish - (so) 'q'?", "Where is 1.5 C#-ish - (so) 'q'?"),
        ("\x1b[31m \u202e", r"\\x1b\[31m \\u202e"),
    ],
)  # fmt: skip
def test_markdown_shows_text_as_it_is_and_mentions_nobody(text, escaped):
    assert markdown_text(text) == escaped


TEXT = st.text(max_size=300) | st.sampled_from(HOSTILE) | st.just("@x <b>|" * 60)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(("fail", "invalid", "inconclusive", "pass")), TEXT, TEXT), max_size=12),
    st.lists(TEXT, max_size=20),
    st.sampled_from((1, 40)),
)  # fmt: skip
def test_any_run_fits_into_a_comment_and_has_no_markup_but_ours(found, problems, times):
    cases = tuple(
        case("head_to_tail", name, verdict, (), suite=f"{at}.kb.yaml", errors=(why,), gates=rich().cases[0].gates,
             lost=tuple(replace(change(i), fact_id=f"{at}{i}", question=why) for i in range(30)))
        for at, (verdict, name, why) in enumerate(found * times)
    )  # fmt: skip
    run = replace(rich(), cases=cases, problems=tuple(problems))
    for text in (comment_markdown(run), summary_markdown(run)):
        assert len(text.encode("utf-16-le")) // 2 <= LARGEST
        assert "<" not in TAGS.sub("", text)
        assert text.count("<details>") == text.count("</details>")
        lines = [
            line.replace("\\\\", "").replace("\\|", "") for line in text.split("\n")
        ]
        for one, other in pairwise(lines):
            if one.startswith("|") and other.startswith("|"):
                assert one.count("|") == other.count("|") > 4


def failing(count):
    run = many(count)
    return replace(run, cases=tuple(replace(one, waiver=None) for one in run.cases))


def test_what_does_not_fit_is_counted():
    for count in (60, 500):
        text = summary_markdown(failing(count))
        assert LARGEST / 2 < len(text) < LARGEST
        # The worst cases keep their facts.
        listed = text.count("60 facts lost (the first 10; all are in report.json)")
        assert 0 < listed < text.count("\n### monitor")
        assert text.index("60 facts lost.") > text.rindex("</details>")
        shown = text.count("\n### monitor") + text.count("\n| **fail")
        left = map(int, re.findall(r"and (\d+) more cases in report.json", text))
        assert shown + sum(left) == 2 * count
    (left,) = re.findall(
        r"and (\d+) more cases in `report.html`", comment_markdown(failing(500))
    )
    assert int(left) == 460


def test_the_command_prints_or_writes_a_comment(tmp_path, capsys):
    write_json(small(), tmp_path / "report.json")
    assert main(["comment", str(tmp_path), "--name=a"]) == 0
    shown = capsys.readouterr().out
    assert shown == comment_markdown(read_run(tmp_path), name="a")
    output = tmp_path / "comment.md"
    command = ["comment", str(tmp_path), f"--output={output}"]
    assert [main(command), main(command), main([*command, "--force"])] == [0, 2, 0]
    assert output.read_text(encoding="utf-8").startswith("<!-- pytest-kbrel -->\n")


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--name=a b", "--name: found 'a b'; allowed: up to 60 letters"),
        ("--link=javascript:x", "--link: found 'javascript:x'; allowed: an address"),
        (
            "--commit=main",
            "--commit: found 'main'; allowed: 7 to 64 hexadecimal digits",
        ),
        ("broken", "cannot be read as a report: "),
    ],
)
def test_a_comment_is_refused_with_what_is_allowed(argument, message, tmp_path, capsys):
    path = tmp_path / "report.json"
    write_json(small(), path)
    if argument == "broken":
        report = json.loads(path.read_text(encoding="utf-8")) | {"baseline": [None]}
        path.write_text(json.dumps(report), encoding="utf-8")
    given_ = [argument] if argument.startswith("--") else []
    assert main(["comment", str(tmp_path), *given_]) == 2
    assert message in capsys.readouterr().err
