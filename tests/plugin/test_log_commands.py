"""Texts of models, facts and files are printed without the commands that CI systems take from a log."""

import json
import os
import shutil

import pytest

from pytest_kbrel.cli import main
from tests.ci_commands import FORMS, commands_in

SUITE = """\
suite: "##vso[task.complete result=Succeeded;]"
facts: "##[facts].jsonl"
head_to_tail:
  prompt: zero-shot
  bucket_by: domain
  gates:
    accuracy: {min: 0.9, max_drop: 0.1}
waivers:
  - {slice: "head_to_tail[places-head]", expires: 2090-01-01, owner: "##[group]me", reason: "::error::x"}
  - {slice: "head_to_tail[places-tail]", expires: 2020-01-01, owner: "##[group]me", reason: "::error::x"}
"""
RELATIONS = """\
P36:
  label: "##[b]"
  domain: places
  frames: ["::error::[X]?"]
"""
# A model answers on one line.
SAID = [form for form in FORMS if len(form.splitlines()) == 1 and form.isprintable()]
FACTS = [
    {
        "relation": "P36",
        "subject": f"{form.strip()} {number}",
        "object": f"{form.strip()} town {number}",
        "popularity": 9 + number,
    }
    for number, form in enumerate(SAID)
]


def lines(rules):
    return "".join(json.dumps(rule) + "\n" for rule in rules)


@pytest.fixture
def gate(pytester, mini_suite):
    """Write a suite of hostile texts, with models that know its facts, answer commands, or fail by them."""

    def run(model, *flags):
        return pytester.runpytest(f"--kb-model=scripted/{model}", "suites", *flags)

    mini_suite(
        SUITE.replace("head_to_tail:", "relations: relations.yaml\nhead_to_tail:"),
        facts="",
    )
    (pytester.path / "suites/facts.jsonl").unlink()
    (pytester.path / "suites/##[facts].jsonl").write_text(lines(FACTS), "utf-8")
    (pytester.path / "suites/relations.yaml").write_text(RELATIONS, "utf-8")
    knows, says, fails = [], [], []
    for number, form in enumerate(SAID):
        condition = {"contains": f" {number}?"}
        knows.append({**condition, "text": f"{form} town {number}"})
        says.append({**condition, "text": f"{form} {'now' * number}"})
        fails.append({**condition, "error": form})
    default = {"default": {"text": "::error::default"}}
    for name, rules in (("##[knows]", knows), ("##vso[says]", says), ("fails", fails)):
        (pytester.path / f"{name}.jsonl").write_text(lines([*rules, default]), "utf-8")
    return run


def printed(result):
    # pytest's own lines hold none of what a terminal obeys: there are no colours here.
    return f"{result.stdout.str()}\n{result.stderr.str()}"


ALL = (
    "-vv",
    "-rA",
    "--tb=long",
    "--showlocals",
    "--junitxml=j.xml",
    "-o",
    "junit_logging=all",
)


def test_a_run_prints_and_writes_no_command_but_keeps_the_exact_text(
    pytester, gate, report, capsys
):
    assert (
        commands_in(
            printed(
                blessed := gate("##[knows].jsonl", *ALL, "--kb-baseline-update=prod")
            )
        )
        == []
    )
    assert "blessed as prod" in blessed.stdout.str()
    shutil.copytree(pytester.path / "kbrel-report", pytester.path / "before")
    result = gate("##vso[says].jsonl", *ALL, "--kb-baseline=prod")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = printed(result)
    assert commands_in(text) == []
    assert ": :error" in text
    assert "# #vso[" in text
    for name in ("j.xml", "kbrel-report/summary.md"):
        written = (pytester.path / name).read_text("utf-8")
        assert commands_in(written) == [], name
        assert "# #vso" in written, name

    answers = [
        change["new_answer"] for case in report()["cases"] for change in case["lost"]
    ]
    assert {answer.strip() for answer in answers} >= {
        f"{form.strip()} {'now' * n}".strip() for n, form in enumerate(SAID)
    }
    responses = (pytester.path / "kbrel-report/responses.jsonl").read_text("utf-8")
    assert json.dumps(SAID[0])[1:-1] in responses
    page = (pytester.path / "kbrel-report/report.html").read_text("utf-8")
    assert SAID[0] in page

    capsys.readouterr()
    assert main(["compare", "-v", "before", "kbrel-report"]) == 0
    out = capsys.readouterr()
    assert commands_in(out.out + out.err) == []
    assert "# #[knows]" in out.out


def test_what_a_model_fails_by_is_printed_without_commands(pytester, gate, report):
    result = gate("fails.jsonl", *ALL)
    assert report()["cases"][0]["verdict"] == "invalid"
    assert commands_in(printed(result)) == []
    for name in ("j.xml", "kbrel-report/summary.md"):
        assert commands_in((pytester.path / name).read_text("utf-8")) == [], name


def test_what_a_test_of_ones_own_shows_of_a_model_holds_no_commands(pytester, gate):
    pytester.makepyfile(
        test_it="""
        import sys
        from pytest_kbrel.records import GenerateRequest

        def test_it(kb_model):
            (response,) = kb_model.generate([GenerateRequest(prompt="?", max_new_tokens=8)])
            print(response.text)
            print(response.text, file=sys.stderr)
            texts = {"answer": response.text, "other": "##vso[x]"}
            assert texts["answer"] == "right", f"{response.text}\\n{response.text}"
        """
    )
    result = pytester.runpytest(
        "--kb-model=scripted/##vso[says].jsonl", "test_it.py", *ALL
    )
    assert result.parseoutcomes() == {"failed": 1}
    assert ": :error" in result.stdout.str()
    assert commands_in(printed(result)) == []
    assert commands_in((pytester.path / "j.xml").read_text("utf-8")) == []


@pytest.mark.parametrize(
    "name", ["##vso[task.complete].kb.yaml", "a\n::error::b.kb.yaml"]
)
def test_a_suite_under_a_name_that_pytest_would_print_is_refused(
    pytester, mini_suite, name
):
    written = mini_suite()
    target = written.parent / name
    target.parent.mkdir(exist_ok=True)
    written.rename(target)
    result = pytester.runpytest("--kb-model=scripted/knows.jsonl", *ALL)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert (
        "the name of this suite, or of a folder it lies in, holds"
        in result.stdout.str()
    )
    assert commands_in(printed(result)) == []
    assert commands_in((pytester.path / "j.xml").read_text("utf-8")) == []
    # Without a model it is named in the header only.
    assert commands_in(printed(pytester.runpytest())) == []


@pytest.mark.parametrize(
    "wrong", ['suite: "::error::y"\n"\\n::error::z": 1', "facts: ' ::error::x ##[a]'"]
)
def test_errors_of_a_suite_are_printed_without_commands(pytester, mini_suite, wrong):
    mini_suite(f"suite: a\n{wrong}\n")
    result = pytester.runpytest("--kb-model=scripted/knows.jsonl", "suites", *ALL)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "mini.kb.yaml" in result.stdout.str()
    assert commands_in(printed(result)) == []


def test_a_command_line_tool_prints_no_commands_of_a_file(pytester, capsys):
    rows = [
        {
            "question": "?",
            "answers": ["##[a]"],
            "prediction": "::error::x",
            "language": "de",
            "##vso[x]": 1,
        }
    ]
    (pytester.path / "##[in].jsonl").write_text(lines(rows), "utf-8")
    (pytester.path / "bad.jsonl").write_text(
        lines([{"##vso[x]": 1, "\n::error::x": 2}]), "utf-8"
    )
    assert main(["judge", "##[in].jsonl", "--output", "##[out].jsonl"]) == 0
    assert main(["judge", "bad.jsonl", "--output", "out.jsonl"]) == 2
    assert main(["judge", f"##[none]{os.sep}x", "--output", "out.jsonl"]) == 2
    assert main(["import", "popqa", "bad.jsonl", "--output", "facts.jsonl"]) == 2
    printed_text = capsys.readouterr()
    assert commands_in(printed_text.out + printed_text.err) == []
    assert "# #[out].jsonl" in printed_text.out
    assert "# #vso[x]" in printed_text.err
    assert "##vso[x]" in (pytester.path / "##[out].jsonl").read_text("utf-8")
