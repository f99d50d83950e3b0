"""Who helps in a run, and which names, arguments and cases are refused before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.models.cache.store import Store
from pytest_kbrel.plugin.preflight import check, check_cases, check_suites
from pytest_kbrel.records import Case
from pytest_kbrel.settings import Settings
from tests.made_cases import made_case, made_options, made_suite
from tests.stub_config import StubConfig

SERVER = "base_url=http://localhost:9/v1"


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def check_judge(settings: Settings) -> None:
    check(StubConfig(Path()), settings)  # type: ignore[arg-type]


def check_args(settings: Settings, *cases: Case) -> None:
    config = StubConfig(Path(), judge_args=settings.judge_args)
    check_suites(config, settings, None, [made_suite(*cases)], ())  # type: ignore[arg-type]


def written(by: str, name: str = "reliability[known-zero-shot]", **more: str) -> Case:
    return made_case(name, distractors_from=by, **more)


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (
            "oracle",
            r"oracle: no such folder; allowed .* reference; without a model: rules$",
        ),
        (
            "openai/gpt",
            r"openai/gpt: the environment variable OPENAI_API_KEY holds no key",
        ),
        ("reference:none", r"none"),
    ],
)
def test_a_judge_that_cannot_be_is_refused(judge: str, said: str) -> None:
    with pytest.raises(KbrelError, match=rf"^--kb-judge: .*{said}"):
        check_judge(made_options(judge=judge))


@pytest.mark.parametrize(
    "judge", ["rules", "reference", "reference:pruned", "openai/gpt"]
)
def test_a_judge_that_can_be(judge: str) -> None:
    check_judge(made_options(judge=judge, judge_args=SERVER))


def test_a_folder_may_have_a_name_that_looks_like_a_slip() -> None:
    # What is wrong with it is said of the folder, not of the name.
    Path("openia/gpt").mkdir(parents=True)
    Path("oracle").mkdir()
    for judge in ("openia/gpt", "oracle"):
        with pytest.raises(KbrelError, match=r"no config\.json"):
            check_judge(made_options(judge=judge))


def test_a_store_that_is_there_is_looked_at_and_none_is_made(tmp_path: Path) -> None:
    judged = {"judge": "openai/gpt", "judge_args": SERVER}
    check_judge(made_options(**judged, use_cache=tmp_path / "new"))
    assert not (tmp_path / "new").exists()
    (tmp_path / "answers.sqlite").write_text(
        "no database, but long enough to be told from one " * 20
    )
    with pytest.raises(
        KbrelError, match=r"answers\.sqlite: kept answers cannot be read"
    ):
        check_judge(made_options(**judged, use_cache=tmp_path))
    check_judge(made_options(judge="rules", use_cache=tmp_path))
    check_judge(made_options(**judged, use_cache=None))
    Store(tmp_path / "sound").close()
    check_judge(made_options(**judged, use_cache=tmp_path / "sound"))


@pytest.mark.parametrize(
    ("name", "words"),
    [(None, '-k "not monitor"'), ("prod", "remove monitor: from the suite")],
)
def test_what_to_do_without_probabilities_can_be_done_where_a_run_is_blessed(
    name: str | None, words: str
) -> None:
    options = made_options(model="openai/m", model_args=SERVER, baseline_update=name)
    with pytest.raises(KbrelError, match=words):
        check_cases(options, [made_case("monitor[P36]")])


@pytest.mark.parametrize(
    ("writer", "said"),
    [
        (
            "fakts",
            r"distractors_from: fakts: no .*; without a model: facts; did you mean 'facts'\?$",
        ),
        ("openai/w", "distractors_from: openai/w: .* holds no key"),
    ],
)
def test_a_writer_that_cannot_be_is_refused_with_its_suite(
    writer: str, said: str
) -> None:
    check_cases(
        made_options(judge_args=SERVER), [written("openai/w"), written("facts")]
    )
    with pytest.raises(KbrelError, match=rf"^mini\.kb\.yaml: .*{said}"):
        check_cases(made_options(), [written("facts"), written(writer)])


ENCODED = {"prompt": "four-shot", "retrieval": "openai/e"}


@pytest.mark.parametrize(
    ("args", "settings", "cases", "unused"),
    [
        ("", {}, [], ""),
        ("seed=1", {"judge": "openai/j"}, [], ""),
        ("seed=1", {}, [], "seed=1"),
        ("seed=1,peft=x", {"judge": "openai/j"}, [written("reference")], ""),
        ("seed=1", {}, [made_case("monitor[a]"), written("openai/w")], ""),
        ("seed=1", {}, [written("facts", **ENCODED)], ""),
        # An encoder on this machine takes none.
    ],
)
def test_an_argument_must_be_for_a_model_that_helps(
    args: str, settings: dict[str, str], cases: list[Case], unused: str
) -> None:
    options = made_options(judge_args=args, **settings)
    if not unused:
        check_args(options, *cases)
        return
    with pytest.raises(
        KbrelError, match=rf"^--kb-judge-args: {unused} is for no model here; found: "
    ):
        check_args(options, *cases)


@pytest.mark.parametrize(
    "args", ["auth_token=sk-secret", "base_url=http://me:sk-secret@h/v1"]
)
def test_an_argument_that_may_be_a_key_is_not_repeated(args: str) -> None:
    with pytest.raises(KbrelError, match="=… is for no model here") as caught:
        check_args(made_options(judge_args=args))
    assert "secret" not in str(caught.value)
