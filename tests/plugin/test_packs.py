"""Packs: blessed runs in one file, which others use, without the texts of data that are not ours to give."""

import json
import lzma

import pytest

from pytest_kbrel.cli import main
from tests.plugin.conftest import CAPITALS, GATE, INT4, RELATIVE, facts_file, one_line

OF_OTHERS = "".join(
    json.dumps(json.loads(line) | {"dataset": "theirs"}) + "\n"
    for line in facts_file().splitlines()
)


@pytest.fixture
def pack(pytester, mini_suite, capsys):
    """Bless a run as ``prod`` and pack it; return the printed SHA-256."""

    def make(*flags, facts=None):
        mini_suite(RELATIVE, facts)
        assert pytester.runpytest(*GATE, "--kb-baseline-update=prod").ret == 0
        capsys.readouterr()
        line = ("pack", "kbrel-report", "--output=baselines/p.kbrel", "--json", *flags)
        assert main(line) == 0
        return json.loads(capsys.readouterr().out)["sha256"]

    return make


@pytest.mark.parametrize(
    ("flags", "facts", "withheld"),
    [((), None, False), ((), OF_OTHERS, True), (("--texts",), OF_OTHERS, False)],
)
def test_a_pack_decides_as_its_run_does(
    pytester, pack, cases, capsys, flags, facts, withheld
):
    sha256 = pack(*flags, facts=facts)
    path = pytester.path / "baselines" / "p.kbrel"
    first = path.read_bytes()
    assert main(("pack", "kbrel-report", f"--output={path}", "--force", *flags)) == 0
    assert path.read_bytes() == first
    assert any(city.encode() in lzma.decompress(first) for _, city, _ in CAPITALS) is (
        not withheld
    )
    pytester.runpytest(INT4, "suites", "--kb-baseline=prod")
    by_run = cases()
    pin = f"--kb-baseline=p@sha256:{sha256}"
    result = pytester.runpytest(INT4, "suites", pin)
    assert f"p@sha256:{sha256} (sha256 {sha256[:12]})" in one_line(result)
    for name, case in cases().items():
        for key in ("verdict", "gates", "metrics", "churn"):
            assert case[key] == by_run[name][key]
        for mine, theirs in zip(case["lost"], by_run[name]["lost"], strict=True):
            is_told = mine["old_answer"] == theirs["old_answer"]
            assert is_told is not withheld
    report = json.loads((pytester.path / "kbrel-report" / "report.json").read_text())
    assert report["baseline_sha256"] == sha256
    capsys.readouterr()
    # In either place of a comparison it stands for its run.
    names = ["prod", "./baselines/p.kbrel"]
    for both in (names, names[::-1]):
        assert main(("compare", *both, "--json")) == 0
        (pair,) = json.loads(capsys.readouterr().out)["paired"]
        churns = [case["churn"] for case in pair["cases"] if case["churn"]]
        assert churns
        assert not any(churn["texts"] for churn in churns)


# An empty one is what a variable of a CI job that was not set leaves.
@pytest.mark.parametrize("sha256", ["0" * 64, ""])
def test_another_file_than_the_one_pinned_is_refused(pytester, pack, sha256):
    pack()
    result = pytester.runpytest(*GATE, f"--kb-baseline=p@sha256:{sha256}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "p.kbrel: found the sha256" in " ".join(result.stderr.str().split())
