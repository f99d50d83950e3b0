"""What of a run is blessed, how its two halves are told to belong together, and by which names they go."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.baselines import (
    baseline_directory,
    find_baseline,
    read_baseline,
    write_baseline,
)
from pytest_kbrel.baselines.format import dump_tables, packed
from pytest_kbrel.errors import BaselineError
from pytest_kbrel.records import CaseResult, MetricValue, Run
from tests.baselines.test_baselines import sound
from tests.gates.tables import answers, case, decided

KEY = "world.kb.yaml::head_to_tail[world-head]"


def meta_of(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(
        (folder / "baseline.json").read_text(encoding="utf-8")
    )
    return result


def overall(*metrics: MetricValue, **more: Any) -> CaseResult:
    given = {
        "id": "head_to_tail[overall]",
        "suite": "suites/world.kb.yaml",
        "probe": "head_to_tail",
    }
    given |= {
        "slice": "overall",
        "verdict": "pass",
        "n": 4,
        "duration": 0.0,
        "metrics": metrics,
        "gates": (),
    }
    return CaseResult(**{**given, "aggregate": True, **more})  # type: ignore[arg-type]


def test_the_readable_half_is_the_documented_one(tmp_path: Path) -> None:
    """Files of this form are committed, and read by those who review them."""
    environment = (("commit", "abc123"), ("torch", "2.9"), ("workers", "2"))
    gap = MetricValue(name="gap", better="lower", value=None)
    run = sound(decided(case(), answers("+-")), overall(gap), environment=environment)
    write_baseline(tmp_path, run, reason="why")
    result = meta_of(tmp_path)
    outcomes, cases, model = (
        result.pop("outcomes"),
        result.pop("cases"),
        result.pop("model"),
    )
    assert result == {
        "schema_version": 2,
        "kbrel_version": "0.1.0",
        "created": "2026-01-02T03:04:05+00:00",
        "provenance": {
            "reason": "why",
            "commit": "abc123",
            "versions": {"torch": "2.9", "workers": "2"},
        },
        "settings": {"model": "reference", "seed": "0"},
        "aggregates": {
            "world.kb.yaml::head_to_tail[overall]": {"metrics": {"gap": None}}
        },
    }
    assert model["spec"] == "reference"
    assert outcomes == {
        "file": f"outcomes-{outcomes['sha256'][:12]}.jsonl.xz",
        "sha256": outcomes["sha256"],
    }
    assert list(cases) == [KEY]
    assert cases[KEY] == {
        "columns": ["correct", "missing", "f1", "rouge_l"],
        "facts": hashlib.sha256(b"Q000\nQ001").hexdigest(),
        "n": 2,
        "metrics": {
            "accuracy": 0.5,
            "hallucination": 0.5,
            "missing": 0.0,
            "accuracy_f1": 0.75,
            "hallucination_f1": 0.25,
            "accuracy_rouge_l": 0.625,
            "hallucination_rouge_l": 0.375,
        },
        "settings": {"max_new_tokens": "32", "prompt": "few-shot"},
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "baseline.json",
        outcomes["file"],
    ]
    again = read_baseline(f"{tmp_path}/", tmp_path)
    assert (again.paper, again.helpers, again.path) == ("", (), tmp_path)
    assert again.versions == (("torch", "2.9"), ("workers", "2"))


INVALID = dataclasses.replace(decided(case(), answers("+")), verdict="invalid")


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (sound(INVALID), "these cases are not sound: head_to_tail[world-head]; "),
        # Errors that the suite lets be are no ground for a baseline.
        (
            sound(
                dataclasses.replace(INVALID, verdict="pass", errors=("Q9: timeout",))
            ),
            "cases are not sound: head_to_tail",
        ),
        (
            sound(decided(case(), answers("+")), overall(verdict="invalid")),
            "sound: head_to_tail[overall]; ",
        ),
        (sound(overall()), "the run has no case; "),
        (
            sound(decided(case(), answers("+"), errors=["x"]), INVALID),
            "[world-head], head_to_tail[world-head]; ",
        ),
        (sound(model=None, complete=False), "the run has no model; "),
        (
            sound(complete=False, problems=("x",)),
            " written: the run is not complete: not every slice of every suite was asked and decided; ",
        ),
        (sound(problems=("gw1 died", "x")), "the run had problems: gw1 died; "),
        (
            sound(
                decided(case(), answers("+")),
                decided(case(suite="b/world.kb.yaml"), answers("+")),
            ),
            f"two suites of the same file name have the case {KEY}; ",
        ),
    ],
)
def test_why_a_run_is_not_blessed(tmp_path: Path, run: Run, why: str) -> None:
    with pytest.raises(BaselineError) as caught:
        write_baseline(tmp_path / "b", run)
    assert why in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/b: no baseline was written: ")
    assert str(caught.value).endswith("; allowed: a complete run without errors")
    assert not (tmp_path / "b").exists()


def respelt(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        meta = meta_of(folder)
        change(meta)
        (folder / "baseline.json").write_text(json.dumps(meta), encoding="utf-8")

    return spoil


def other_outcomes(*tables: tuple[str, str]) -> Callable[[Path], None]:
    """Outcomes that the readable half names by their digest, of other cases or facts than it has."""

    def spoil(folder: Path) -> None:
        lines = dump_tables((key, answers(marks)) for key, marks in tables)
        meta = meta_of(folder)
        (folder / "other.xz").write_bytes(packed(lines))
        meta["outcomes"] = {
            "file": "other.xz",
            "sha256": hashlib.sha256(lines).hexdigest(),
        }
        (folder / "baseline.json").write_text(json.dumps(meta), encoding="utf-8")

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (other_outcomes(), f"KeyError: '{KEY}'"),
        *(
            (respelt(lambda of, key=key: of.pop(key)), f"KeyError: '{key}'")  # type: ignore[misc]
            for key in (
                "kbrel_version",
                "created",
                "provenance",
                "model",
                "settings",
                "cases",
            )
        ),
        *(
            (
                respelt(lambda of, key=key: of["provenance"].pop(key)),
                f"KeyError: '{key}'",
            )  # type: ignore[misc]
            for key in ("reason", "commit", "versions")
        ),
        *(
            (
                respelt(lambda of, key=key: of["cases"][KEY].pop(key)),
                f"KeyError: '{key}'",
            )  # type: ignore[misc]
            for key in ("metrics", "settings")
        ),
    ],
)
def test_halves_that_do_not_belong_together_are_refused(
    tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    write_baseline(tmp_path / "b", sound(decided(case(), answers("+-"))))
    spoil(tmp_path / "b")
    with pytest.raises(BaselineError) as caught:
        read_baseline(f"{tmp_path}/b", tmp_path)
    assert message in str(caught.value)
    assert "; allowed: " in str(caught.value)


@pytest.mark.parametrize(
    ("name", "below_root"),
    [("prod", True), ("prod.v1", True), ("a-b", True), ("x/prod", False), ("prod/", False),
     (".prod", False), ("./prod", False), ("..", False), ("~prod", None), ("/prod", False)],
)  # fmt: skip
def test_what_is_a_name_and_what_a_path(name: str, below_root: bool | None) -> None:
    if below_root is None:
        with pytest.raises(BaselineError, match=f"^{name}: .*; allowed: "):
            baseline_directory(name, Path("root"))
        return
    assert baseline_directory(name, Path("root")) == Path(
        "root/baselines" if below_root else "", name
    )


def test_a_name_that_is_none_is_answered_with_what_there_is(tmp_path: Path) -> None:
    for name in ("prod", "canary"):
        write_baseline(tmp_path / "baselines" / name, sound())
    (tmp_path / "baselines" / "empty").mkdir()
    with pytest.raises(BaselineError) as caught:
        find_baseline("nightly", tmp_path)
    assert str(caught.value) == (
        f"no baseline is called 'nightly' in {tmp_path}/baselines or among those that ship; "
        "found: canary, prod, reference, smollm2-135m-instruct; allowed: one of these, or a path with a slash"
    )
    with pytest.raises(BaselineError, match=r"a slash; did you mean 'prod'\?$"):
        find_baseline("prodd", tmp_path)
    # A paper's model, whatever its capitals.
    with pytest.raises(
        BaselineError, match=r"a slash; did you mean 'published/monitor/bloomz-3b'\?$"
    ):
        find_baseline("BLOOMZ-3b", tmp_path)
    # The paper itself is none of its models.
    with pytest.raises(BaselineError) as caught:
        find_baseline("monitor", tmp_path)
    assert "published/monitor/" not in str(caught.value)
    # Of more than three models of the name the first.
    own = tmp_path / "baselines" / "published" / "zoo"
    own.mkdir(parents=True)
    (own / "llama-2-7b.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BaselineError) as caught:
        find_baseline("llama-2-7b", tmp_path)
    assert str(caught.value).endswith(
        "did you mean 'published/reliable-kb/llama-2-7b/four-shot' or "
        "'published/reliable-kb/llama-2-7b/four-shot-2' or 'published/reliable-kb/llama-2-7b/zero-shot'?"
    )


def test_the_shipped_pack_is_the_shipped_baseline(tmp_path: Path) -> None:
    folder, pack = (
        read_baseline(f"reference{suffix}", tmp_path) for suffix in ("", ".kbrel")
    )
    assert (pack.model, pack.cases) == (folder.model, folder.cases)
