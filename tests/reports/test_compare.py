import json
import subprocess
import sys

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.reports.json_report import write_json
from tests.golden import figures_of, rows_of


@pytest.fixture
def compare(tmp_path, monkeypatch):
    """Run the command in an empty folder and return what it wrote as JSON."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*sources):
        assert main(["compare", *sources, "-v", "--json", "out.json", "--force"]) == 0
        return json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))

    return run


def coefficient(data, within, x, y, method="pearson"):
    (one,) = [
        entry
        for entry in data["correlations"]
        if (entry["within"], entry["x"], entry["y"], entry["method"])
        == (within, x, y, method)
    ]
    return dict(one)


class TestPapers:
    def test_monitor_and_accuracy_over_the_twelve_models(self, compare):
        """Table 4, Table 6 and three of Table 12, from the published baselines."""
        data = compare("published/monitor")
        assert len(data["models"]) == 12
        stated = {
            row["relation"]: value
            for row, value in figures_of("monitor.csv", 12)
            if row["metric"] == "pearson_r"
        }
        for relation in ("P178", "P108", "P37"):
            one = coefficient(data, f"monitor[{relation}]", "monitor", "accuracy")
            assert one["r"] == pytest.approx(stated[relation], abs=0.0006)
        overall = coefficient(data, "monitor[overall]", "monitor", "accuracy")
        assert overall["r"] == pytest.approx(-0.846, abs=0.001)
        assert (overall["n"], overall["over"]) == (12, "models")
        assert overall["p"] <= 0.001
        deviation = coefficient(data, "monitor[P1412]", "monitor", "accuracy_std")
        assert deviation["r"] == pytest.approx(0.754, abs=0.0005)

    @pytest.mark.parametrize(
        "sources", ["published/reliable-kb", "published/reliable-kb/*/four-shot"]
    )
    def test_table_2_over_the_26_models(self, compare, sources):
        data = compare(sources)
        settings = (
            ["four-shot"]
            if sources.endswith("four-shot")
            else ["zero-shot", "four-shot", "four-shot-2"]
        )
        assert len(data["models"]) == 26 * len(settings)
        rows = [
            row
            for row in rows_of("reliable_kb_correlations.csv")
            if row["setting"] in settings
        ]
        assert len(rows) == 3 * len(settings)
        negative = set()
        for row in rows:
            one = coefficient(
                data, f"reliability[{row['setting']}]", row["x"], row["y"]
            )
            # The sign of two is not printed, and one is cut off instead of rounded.
            assert abs(one["r"]) == pytest.approx(float(row["r"]), abs=0.0101)
            if one["r"] < 0:
                negative.add((row["setting"], row["x"]))
        assert negative == {
            (setting, "nccr") for setting in settings if setting != "four-shot-2"
        }
        # A model in three settings is not three models.
        assert {(one["n"], one["note"]) for one in data["correlations"]} == {(26, "")}
        # What is printed over both kinds of slice is in these already.
        assert {one["within"] for one in data["correlations"]} == {
            f"reliability[{one}]" for one in settings
        }

    def test_rules_and_judge_over_the_fourteen_models(self, compare):
        data = compare("published/head-to-tail")
        for score in ("em", "f1", "rouge_l"):
            one = coefficient(
                data,
                "head_to_tail[overall]",
                f"accuracy_{score}",
                "accuracy",
                "spearman",
            )
            assert (one["n"], one["r"] > 0.9) == (14, True)


def report(folder, figures, **more):
    """Write the least that a report must have, as another version of the plugin may write it."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "schema_version": 1,
        "kbrel_version": "99.1",
        "created": "2030-01-01T00:00:00+00:00",
        "model": {"spec": "theirs", "a_new_key": [1]},
        "environment": {},
        "settings": {},
        "cases": [
            {
                "id": case,
                "metrics": {
                    name: {"value": of, "unheard": {}} for name, of in metrics.items()
                },
            }
            for case, metrics in figures.items()
        ],
        "aggregates": {},
        "correlations": [],
        "summary": {},
        "exit_status": 0,
        "complete": True,
        "problems": [],
        "another_new_key": 1,
        **more,
    }
    (folder / "report.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def three(tmp_path, values):
    return [
        str(
            report(
                tmp_path / f"r{k}",
                {"suites/w.kb.yaml::monitor[P37]": {"monitor": a, "accuracy": b}},
            )
        )
        for k, (a, b) in enumerate(values)
    ]


def test_reports_side_by_side(compare, tmp_path):
    data = compare(*three(tmp_path, [(0.1, 0.9), (0.2, 0.7), (0.4, 0.6)]))
    (case,) = data["cases"]
    assert case["figures"] == {"monitor": [0.1, 0.2, 0.4], "accuracy": [0.9, 0.7, 0.6]}
    one = coefficient(data, "monitor[P37]", "monitor", "accuracy", "spearman")
    assert one["r"] == pytest.approx(-1)


def test_a_model_that_lacks_a_figure_is_left_out_and_counted(compare, tmp_path):
    data = compare(*three(tmp_path, [(0.1, 0.9), (0.2, 0.7), (0.3, None), (0.4, 0.1)]))
    one = coefficient(data, "monitor[P37]", "monitor", "accuracy")
    assert (one["n"], one["note"]) == (
        3,
        "1 of 4 models left out: they lack one of the figures",
    )
    assert data["cases"][0]["figures"]["accuracy"] == [0.9, 0.7, None, 0.1]


def test_beside_monitor_stand_accuracy_and_anchor_probability_also_of_one_model_only(
    compare, tmp_path, capsys
):
    own = {"monitor": 0.1, "pfd": 0.2, "anchor_prob": 0.25, "accuracy": 0.5}
    a = report(
        tmp_path / "a", {f"w.kb.yaml::monitor[{name}]": own for name in ("P19", "P37")}
    )
    data = compare(str(a), "published/monitor/vicuna-7b")
    # The paper has the second relation's, and of the first MONITOR alone.
    assert [list(case["figures"]) for case in data["cases"]] == [
        ["monitor", "anchor_prob", "accuracy"]
    ] * 2
    first, second = (case["figures"] for case in data["cases"])
    assert (first["accuracy"], first["anchor_prob"]) == ([0.5, None], [0.25, None])
    assert None not in (*second["accuracy"], *second["anchor_prob"])
    assert "  accuracy     0.500       –" in [
        line.rstrip() for line in capsys.readouterr().out.splitlines()
    ]


def test_the_same_case_in_two_suites_keeps_its_suite(compare, tmp_path):
    both = {
        "x/w.kb.yaml::monitor[P37]": {"monitor": 0.1},
        "v.kb.yaml::monitor[P37]": {"monitor": 0.2},
    }
    paths = [str(report(tmp_path / name, both)) for name in "ab"]
    data = compare(*paths)
    assert [case["id"] for case in data["cases"]] == [
        "w.kb.yaml::monitor[P37]",
        "v.kb.yaml::monitor[P37]",
    ]


def test_a_real_report_a_blessed_run_and_a_paper(compare, tmp_path, small_run):
    write_json(small_run, tmp_path / "mine" / "report.json")
    data = compare(
        "mine", "mine/report.json", "reference", "published/monitor/bloomz-3b"
    )
    assert [model["name"] for model in data["models"]] == [
        "mine",
        "mine/report.json",
        "reference",
        "published/monitor/bloomz-3b",
    ]
    overall = next(case for case in data["cases"] if case["id"] == "monitor[overall]")
    ours, again, blessed, theirs = overall["figures"]["monitor"]
    assert blessed is not None
    assert theirs == pytest.approx(0.72005, abs=0.001)
    assert ours == again


def refused(*sources):
    return main(["compare", *sources])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 9}, "reads up to 1: upgrade"),
        ({"cases": [{"metrics": {}}]}, "is no whole report: KeyError: 'id'"),
    ],
)
def test_a_report_that_cannot_be_read_is_named(
    change, message, compare, tmp_path, capsys
):
    path = report(tmp_path / "a", {}, **change)
    assert refused(str(path), "reference") == 2
    stderr = capsys.readouterr().err
    assert message in stderr
    assert str(path) in stderr


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (("reference",), "found 1 model to compare; allowed: two or more"),
        (
            ("reference", "reference"),
            "reference: found more than once; allowed: two or more different",
        ),
        (
            ("reference", "./nope"),
            "nope: nothing is there; allowed: a report folder, or a folder that --kb-baseline-update wrote",
        ),
        (
            ("published/monitor/vicuna-7b", "published/head-to-tail/chatgpt"),
            "no figure is in two of published/",
        ),
    ],
)
def test_what_cannot_be_compared_is_answered_in_one_line(
    sources, message, compare, capsys
):
    assert refused(*sources) == 2
    stderr = capsys.readouterr().err
    assert message in stderr
    assert stderr.count("\n") == 1


def asked(folder, suite, settings, **run):
    """Write a report of one case that was asked in its own way, by an older version without outcomes."""
    nodeid = f"{suite}::reliability[known-zero-shot]"
    case = {"id": nodeid, "metrics": {"ncr": {"value": 0.5}}, "settings": settings}
    return str(
        report(
            folder, {}, cases=[case], settings={"judge": "rules", "limit": "", **run}
        )
    )


def test_what_was_not_asked_alike_is_marked(compare, tmp_path):
    data = compare(
        asked(tmp_path / "a", "x/w.kb.yaml", {"choices": "20", "prompt": "zero-shot"}),
        asked(tmp_path / "b", "y/w.kb.yaml", {"choices": "3", "prompt": "zero-shot"}),
        asked(tmp_path / "c", "v.kb.yaml", {"prompt": "zero-shot"}, judge="openai/j"),
    )
    said = "suites w.kb.yaml, v.kb.yaml; choices 20, 3; judges rules, openai/j"
    assert [case["differing"] for case in data["cases"]] == [said]


def test_runs_without_outcomes_are_said_to_be_unpaired(compare, tmp_path, capsys):
    paths = three(tmp_path, [(0.1, 0.9), (0.2, 0.7)])
    assert compare(*paths)["paired"] == []
    assert main(["compare", *paths, "--exit-code"]) == 2
    stderr = capsys.readouterr().err
    assert "--exit-code: no gate can be judged of runs that cannot be paired" in stderr
    assert "there is no outcomes.jsonl.xz beside its report" in stderr


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    """As in ``kbrel compare ... | head -1``: the pipe is closed before all is written."""
    command = [sys.executable, "-m", "pytest_kbrel.cli", "compare", "published/monitor"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate(timeout=300)
    assert (process.returncode, said) == (141, b"")
