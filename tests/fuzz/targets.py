"""What is damaged, and what then reads it: each target is called in this process."""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.models.answers.model import AnswersModel
from pytest_kbrel.models.answers.spec import parse_answers, to_export
from pytest_kbrel.models.openai.client import read_json
from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.openai.spec import parse_openai
from pytest_kbrel.records import GenerateRequest, ScoreRequest
from pytest_kbrel.suites import load_suite
from tests.fuzz.damage import damaged, with_other_value
from tests.fuzz.facts_files import facts_files
from tests.models.openai import scoring_server
from tests.openai_server import Call
from tests.plugin.conftest import INVENTS, RELATIONS, SCRIPTS, facts_file, script
from tests.suites import conftest as world
from tests.suites.examples import GOOD

_MADE = Path(__file__).parents[1] / "foreign" / "made"
_SUITE = """\
suite: mini
facts: facts.jsonl
monitor: {negatives: 2, gates: {accuracy_base: {min: 0.3, max_drop: 0.1}}}
head_to_tail: {prompt: zero-shot, gates: {accuracy: {min: 0.3, max_drop: 0.1}}}
reliability:
  choices: 3
  distractors: 6
  unseen: {count: 6, as_of: 2026-11-01, expires: 2090-01-01}
  gates: {cr: {min: 0.3}}
overall: {gates: {as_expected: {max_drop: 0.1}}}
"""
_QUESTIONS = [f"What is the capital of {name}?" for name in ("Peru", "Chad", "Oman")]


class Target(NamedTuple):
    """Files of the working directory, one of which is damaged, and the function that reads them.

    ``read`` gets the path of that file and returns an exit code, which may not be 0 where
    ``never_green`` says so: the model is wrong, whatever the file says.
    """

    files: Sequence[str]
    read: Callable[[Path], int]
    never_green: bool = False


def world_of(folder: Path) -> None:
    """Write a folder that all targets share: suites, facts, and recorded runs of two models."""
    files: dict[str, str | bytes] = {
        "knows.jsonl": SCRIPTS["knows"],
        "wrong.jsonl": script((), INVENTS),
        "suites/mini.kb.yaml": _SUITE,
        "suites/facts.jsonl": facts_file(),
        "suites/relations.yaml": RELATIONS,
        "more/facts.jsonl": "".join(map(_line, world.world_facts())),
        "more/relations.yaml": world.RELATIONS,
        "labels.jsonl": "".join(map(_line, _labels())),
        "answers.jsonl": "".join(map(_line, _answers())),
        "a.csv": "id,score\n" + "".join(f"q{at},1\n" for at in range(30)),
        "b.csv": "id,score\n" + "".join(f"q{at},{at % 2}\n" for at in range(30)),
    }
    for at, text in enumerate(GOOD.values()):
        files[f"more/{at}.kb.yaml"] = text
    for at, facts in enumerate(facts_files()):
        files[f"formats/{at}/t.kb.yaml"] = facts.suite
        for name, data in facts.files.items():
            files[f"formats/{at}/{name.removeprefix('suites/')}"] = data
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(data)
    shutil.copytree(_MADE, folder, dirs_exist_ok=True)
    knows, wrong = "--kb-model=scripted/knows.jsonl", "--kb-model=scripted/wrong.jsonl"
    runs = [
        (knows, "--kb-output-path=whole", "--kb-baseline-update=old"),
        (wrong, "--kb-output-path=wrong"),
        *((wrong, f"--kb-output-path={at}", f"--kb-shard={at}/2") for at in (1, 2)),
    ]
    with contextlib.chdir(folder):
        ends = [pytest.main(["-q", "suites", *flags]) for flags in runs]
    assert ends == [0, 1, 0, 0]


def _line(value: Any) -> str:
    return json.dumps(value) + "\n"


def _labels() -> list[dict[str, str]]:
    return [
        {"question": "q", "prediction": "p", "verdict": verdict, "label": label}
        for verdict in ("correct", "wrong", "uninformative")
        for label in ("right", "wrong", "missing")
    ]


def _requests() -> list[GenerateRequest]:
    return [
        GenerateRequest(prompt=text, max_new_tokens=8, stop=("\n",))
        for text in _QUESTIONS
    ]


def _answers() -> list[dict[str, Any]]:
    """Return lines of a batch's output that answer all requests."""
    names: list[str] = []
    model = AnswersModel(to_export(parse_openai("openai/m", "logprobs=True")))
    model.listen(lambda name, path, body: names.append(name))
    model.generate(_requests())
    model.close()
    logprobs = {"content": [{"token": "Lima", "logprob": -0.25}]}
    choice = {"message": {"content": "Lima"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    choices = [{**choice, "logprobs": logprobs}]
    body = {"model": "m", "system_fingerprint": "f", "choices": choices, "usage": usage}
    response = {"status_code": 200, "body": body}
    return [{"custom_id": name, "response": response, "error": None} for name in names]


def _command(*arguments: str) -> Callable[[Path], int]:
    return lambda path: main(arguments)


def _suites(path: Path) -> int:
    """Load the suite that a file is, or all suites that it may belong to."""
    depth = 1 if path.parts[0] == "more" else 2
    found = sorted(Path(*path.parts[:depth]).glob("*.kb.yaml"))
    for suite in [path] if path in found else found:
        load_suite(suite)
    return 0


def _answered(path: Path) -> int:
    spec = parse_answers("answers/answers.jsonl", "logprobs=True")
    model = AnswersModel(spec)
    model.generate(_requests())
    model.describe()
    model.close()
    return 0


class _Served:
    """Replies of a server that scores in one dialect, some of them damaged."""

    repeats_key = False

    def __init__(self, dialect: str, random: Random) -> None:
        self._random = random
        routes = {"/tokenize": scoring_server.tokenize}
        self._routes = {**routes, **scoring_server.ROUTES[dialect]}
        self.sound = 0

    def ask(self, path: str, body: Any) -> Any:
        name = path.removeprefix("http://x").removeprefix("/")
        route = self._routes.get(name) or self._routes.get(f"/{name}")
        reply = route(Call(path=path, body=body, headers={})) if route else {}
        self.sound -= 1
        if self.sound < 0 and self._random.random() < 0.7:
            reply = with_other_value(json.loads(json.dumps(reply)), self._random)
        return read_json(json.dumps(reply).encode())

    def about(self) -> str:
        return ""

    def close(self) -> None:
        pass


def _score(random: Random) -> None:
    """Score by a server, whose first replies are sound so that its dialect is found."""
    served = _Served(random.choice(list(scoring_server.ROUTES)), random)
    args = "base_url=http://x/v1,endpoint=completions,logprobs=True,max_concurrent=1"
    model = OpenAIModel(parse_openai("openai/m", args), served)
    served.sound = random.choice((0, 5, 100))
    try:
        if not model.unscorable:
            served.sound = 0
            pair = ScoreRequest(prompt="Berlin is in", continuation=" Germany")
            model.score([pair, pair])
        model.generate(_requests())
    finally:
        model.close()


_OUT = ("--output", "out", "--force")
_EEE = sorted(str(one.relative_to(_MADE)) for one in _MADE.glob("eee/*/*.jsonl"))
_DRAWN = ("--output", "drawn.jsonl", "--force")
TARGETS = {
    "suites": Target(["more/*.yaml"], _suites),
    "facts": Target(["formats/*/**/*"], _suites),
    "shards": Target(["1/*", "2/*"], _command("merge", "1", "2", *_OUT), True),
    "baselines": Target(
        ["baselines/old/*"],
        _command("merge", "1", "2", "--baseline=old", *_OUT),
        never_green=True,
    ),
    "compared": Target(
        ["whole/*.json*", "wrong/*.json*", "baselines/old/*"],
        _command(
            "compare",
            "old",
            "whole",
            "wrong",
            "--exit-code",
            "--html",
            "page",
            "--force",
        ),
        never_green=True,
    ),
    "drawn": Target(["whole/*.json*"], _command("labels", "whole", *_DRAWN)),
    "labels": Target(["labels.jsonl"], _command("labels", "labels.jsonl")),
    "lm_eval": Target(
        ["lm_eval/b/**/*"], _command("compare", "lm_eval/a", "lm_eval/b")
    ),
    "eee": Target(["eee/b/*"], _command("compare", *_EEE)),
    "plain": Target(["b.csv"], _command("compare", "a.csv", "b.csv")),
    "answers": Target(["answers.jsonl"], _answered),
    "probabilities": Target(["labels.jsonl"], lambda path: 0),
}


def try_once(name: str, seed: int) -> None:
    """Damage one file of a target here, and read it; raises what is no error for a user."""
    random = Random(f"{name} {seed}")
    with contextlib.suppress(KbrelError):
        if name == "probabilities":
            _score(random)
            return
        target = TARGETS[name]
        path = random.choice(files_of(target))
        before = path.read_bytes()
        data = damaged(path.name, before, random)
        digest, renewed = _digest(path, before), random.random() < 0.7
        holders = _holders_of(digest, path) if renewed else {}
        try:
            path.write_bytes(data)
            for holder, text in holders.items():
                holder.write_text(text.replace(digest, _digest(path, data)))
            code = target.read(path)
        finally:
            path.write_bytes(before)
            for holder, text in holders.items():
                holder.write_text(text)
        assert not (target.never_green and code == 0), f"a pass with a damaged {path}"


def files_of(target: Target) -> list[Path]:
    """Return the files of which one is damaged."""
    found = {path for pattern in target.files for path in Path().glob(pattern)}
    return sorted(path for path in found if path.is_file())


def _digest(path: Path, data: bytes) -> str:
    """Return the digest that a report or a baseline keeps of a file; of bytes that are no xz any."""
    try:
        whole = lzma.decompress(data) if path.suffix == ".xz" else data
    except lzma.LZMAError:
        whole = data
    return hashlib.sha256(whole).hexdigest()


def _holders_of(digest: str, path: Path) -> dict[Path, str]:
    """Return the texts of the documents beside a file that hold its digest."""
    texts = {one: one.read_text("utf-8") for one in path.parent.glob("*.json")}
    return {one: text for one, text in texts.items() if digest in text}
