"""A recorded run in place of models: which folders are one, what is told of what it lacks, who helps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel import __version__
from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.evaluation.model_pool import ModelPool, News
from pytest_kbrel.evaluation.recorded_run import read_run
from pytest_kbrel.models import registry
from pytest_kbrel.records import (
    Ask,
    Exchange,
    Failed,
    Generated,
    GenerateRequest,
    ReliabilitySettings,
)
from pytest_kbrel.reports import sha256_of
from pytest_kbrel.serialization import to_wire
from pytest_kbrel.store.lines import to_line
from tests.function_model import FunctionModel
from tests.made_cases import RECORDED_MODEL, made_case, made_options

CASE = "mini.kb.yaml::head_to_tail[a]"


def ask(number: int, **more: Any) -> GenerateRequest:
    return GenerateRequest(
        **({"prompt": f"question {number}", "max_new_tokens": 4} | more)
    )


def generated(text: str) -> Generated:
    return Generated(
        text=text, token_ids=(), finish="stop", prompt_tokens=1, prompt_digest="d"
    )


def exchange(
    number: int, *, case: str = CASE, to: str = "", text: str = "recorded"
) -> Exchange:
    return Exchange(
        case=case,
        ask=Ask(fact_id=f"f{number}", role="answer", to=to, request=ask(number)),
        response=generated(text),
    )


def recorded(folder: Path, *exchanges: Exchange, **report: Any) -> Path:
    """Write as much of a run as is read again."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "responses.jsonl").write_bytes(
        b"".join(map(to_line, exchanges or (exchange(1),)))
    )
    content = {
        **{
            "schema_version": 1,
            "kbrel_version": __version__,
            "created": "",
            "environment": {},
        },
        **{
            "model": to_wire(RECORDED_MODEL),
            "settings": {"model": "theirs"},
            "cases": [{"id": CASE}],
        },
        **{
            "aggregates": {},
            "correlations": [],
            "summary": {},
            "exit_status": 0,
            "complete": True,
        },
        **{
            "problems": [],
            "files": {"responses.jsonl": sha256_of(folder / "responses.jsonl")},
            **report,
        },
    }
    content["cases"] = [whole_case(case) for case in content["cases"]]
    (folder / "report.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def whole_case(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case of a report with all that each one has, none where it has no id."""
    if "id" not in case:
        return case
    plain = {"probe": "test", "slice": "", "verdict": "pass", "n": 0, "duration": 0.0}
    suite = case["id"].partition("::")[0]
    return {"suite": suite, **plain, "metrics": {}, "gates": [], **case}


def replay_pool(folder: Path, **settings: Any) -> ModelPool:
    return ModelPool(made_options(from_run=folder, **settings))


@pytest.mark.parametrize(
    ("spoil", "report", "result"),
    [
        ("nothing", {}, r"has no report\.json"),
        ("report.json", {}, r"has no report\.json"),
        ("responses.jsonl", {}, r"responses\.jsonl: cannot be read"),
        ("", {"model": None}, "no one model answered in this run"),
        ("", {"model": {}}, "cannot be read as a report: ValueError"),
        ("", {"cases": [{}]}, "cannot be read as a report: KeyError"),
        ("", {"settings": []}, "cannot be read as a report: AttributeError"),
        ("", {"helpers": [{}]}, "cannot be read as a report: ValueError"),
        ("other", {}, r"responses\.jsonl: is not the file"),
        (
            "",
            {"files": {}},
            r"report\.json: names no digest of responses\.jsonl.*of one run",
        ),
    ],
)
def test_what_is_no_folder_of_a_finished_run(
    tmp_path: Path, spoil: str, report: dict[str, Any], result: str
) -> None:
    folder = tmp_path / "run"
    if spoil != "nothing":
        recorded(folder, **report)
        responses = folder / "responses.jsonl"
        if spoil == "other":
            responses.write_bytes(responses.read_bytes() * 2)
        elif spoil:
            (folder / spoil).unlink()
    with pytest.raises(KbrelError, match=result):
        read_run(folder)


def test_no_model_is_loaded_and_the_recorded_one_is_told(tmp_path: Path) -> None:
    base = replace(RECORDED_MODEL, spec="base")
    folder = recorded(tmp_path / "run", base=to_wire(base))
    pool = replay_pool(folder)
    assert pool.fingerprint().spec == "theirs"
    assert pool.base() is None
    assert pool.notes() == ()
    noted = recorded(tmp_path / "noted", environment={"model_notes": "one\ntwo"})
    assert replay_pool(noted).notes() == ("one", "two")
    result = replay_pool(folder, baseline_model="base").base()
    assert result is not None
    assert result.spec == "base"
    assert pool.news() == News(models=(("", pool.fingerprint()),))


def test_what_is_not_recorded_fails_and_is_counted_by_case(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = recorded(
        tmp_path / "run",
        exchange(1),
        exchange(2, to="baseline", text="base"),
        base=to_wire(RECORDED_MODEL),
    )
    pool = replay_pool(folder, baseline_model="base")
    assert pool.missing_responses(CASE) == ""
    assert pool.ask([ask(1)], "", CASE) == [generated("recorded")]
    assert pool.missing_responses(CASE) == ""
    result = pool.ask([ask(3), ask(1), ask(4)], "", CASE)
    assert result == [
        Failed(error="not recorded"),
        generated("recorded"),
        Failed(error="not recorded"),
    ]
    assert pool.ask([ask(2), ask(1)], "baseline", CASE) == [
        generated("base"),
        Failed(error="not recorded"),
    ]
    assert pool.missing_responses(CASE).startswith(
        "3 of 6 requests of this case are not among the responses recorded in run: the suite asks something"
    )
    assert pool.missing_responses("other.kb.yaml::x") == ""
    other = "mini.kb.yaml::head_to_tail[b]"
    pool.ask([ask(9)], "", other)
    assert pool.missing_responses(other) == (
        "all requests of this case are not among the responses recorded in run: the recorded run did not ask "
        "this case; leave it out with -k as that run did, or record a run with it"
    )
    older = replay_pool(recorded(tmp_path / "older", kbrel_version="0.0"))
    older.ask([ask(9)], "", CASE)
    assert (
        f"older: pytest-kbrel 0.0 recorded it, this is {__version__}; the suite asks"
        in older.missing_responses(CASE)
    )


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have each helper model be a scripted one; return which were opened."""
    result: list[str] = []

    def open_model(spec: Any, **how: object) -> FunctionModel:
        result.append(spec.text)
        return FunctionModel(lambda prompt: "live", name="live")

    monkeypatch.setattr(registry, "open_model", open_model)
    return result


def test_a_helping_model_is_opened_for_what_is_not_recorded_of_it(
    tmp_path: Path, opened: list[str]
) -> None:
    judge = replace(FunctionModel(name="live").describe(), spec="hf/a/j")
    folder = recorded(tmp_path, exchange(1, to="hf/a/j"), helpers=[to_wire(judge)])
    pool = replay_pool(folder, judge="hf/a/j")
    assert pool.helper("hf/a/j") == judge
    assert pool.ask([ask(1)], "hf/a/j", CASE) == [generated("recorded")]
    assert (opened, pool.news().helped) == ([], (1, 1))
    result = pool.ask([ask(2), ask(1)], "hf/a/j", CASE)
    assert [one.text for one in result if isinstance(one, Generated)] == [
        "live",
        "recorded",
    ]
    assert (opened, pool.news().helped) == (["hf/a/j"], (2, 1))
    assert pool.ask([ask(1)], "hf/a/w", CASE) != [generated("recorded")]
    assert pool.helper("hf/a/w").spec == "hf/a/w"
    assert [one.spec for one in pool.helpers()] == ["hf/a/j", "hf/a/w"]
    # Nothing of that is lacking: a helper model can still be asked.
    assert pool.missing_responses(CASE) == ""
    pool.close()


def test_replies_of_two_models_of_one_name_are_not_joined(
    tmp_path: Path, opened: list[str]
) -> None:
    other = replace(FunctionModel(name="another").describe(), spec="hf/a/j")
    folder = recorded(tmp_path, exchange(1, to="hf/a/j"), helpers=[to_wire(other)])
    pool = replay_pool(folder, judge="hf/a/j")
    with pytest.raises(
        ModelError,
        match=r"^--kb-judge: 1 of 2 replies that .*head_to_tail\[a\] needs of hf/a/j are not recorded in .*"
        r", so that it has to be asked: it is not the model that was recorded: ",
    ):
        pool.ask([ask(1), ask(2)], "hf/a/j", CASE)


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ({"prompt": "four-shot", "retrieval": "hf/e"}, True),
        # Where words chose them, they do so again.
        ({"prompt": "four-shot", "retrieval": "tfidf"}, False),
    ],
)
def test_examples_that_an_encoder_chose_are_those_of_the_record(
    tmp_path: Path, settings: dict[str, str], chosen: bool
) -> None:
    pool = replay_pool(recorded(tmp_path))
    case = made_case("reliability[known]", **settings)
    assert isinstance(case.settings, ReliabilitySettings)
    # A case without facts needs no prompt, so that all examples are found.
    assert (pool.with_examples(case) == case) is chosen
    assert pool.with_examples(made_case("monitor[a]")) is None
    pool.close()
