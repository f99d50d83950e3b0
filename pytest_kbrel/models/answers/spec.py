"""Files of a batch's requests and answers, in the format of OpenAI's batch service, and the spec of their model.

``vllm run-batch`` reads and writes the same format.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.arguments import parse_backend_args
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.openai.replies import excerpt, failure_of, served_by
from pytest_kbrel.models.openai.spec import OPENAI_ARGS, OpenAISpec, parse_openai
from pytest_kbrel.records import Failed, record
from pytest_kbrel.untrusted import lines, parse

PROBE = "kbrel-thought-probe"
"""The id of the request that shows whether a model thinks before it answers; no probe asks it."""

_ID = re.compile(r"kbrel-[0-9a-f]{40}")
_REQUEST = re.compile(rb'{"custom_id": "kbrel-[^"]+", "method": ')


def request_id(path: str, body: Mapping[str, Any]) -> str:
    """Return the ``custom_id`` of a request: a digest of its path and of its body without the model's name.

    Two requests that a model would read alike have one id, whatever the model is called.
    """
    rest = {key: value for key, value in body.items() if key != "model"}
    return f"kbrel-{hashlib.sha256(json.dumps([path, rest], sort_keys=True).encode()).hexdigest()[:40]}"


def request_line(name: str, path: str, body: Mapping[str, Any]) -> str:
    """Return the line of a batch's input file for a request to ``/v1`` + ``path``, with its end."""
    return (
        json.dumps(
            {"custom_id": name, "method": "POST", "url": f"/v1{path}", "body": body}
        )
        + "\n"
    )


def is_request_file(path: Path) -> bool:
    """Return True if a file has lines of :func:`request_line` and no others."""
    with path.open("rb") as stream:
        return all(map(_REQUEST.match, stream))


class Place(NamedTuple):
    """Where the answer to a request stands: file, line (from 1), byte, and whether it is an error."""

    file: Path
    line: int
    start: int
    is_error: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class AnswerFiles:
    """Answers of one model in some files, or in none, looked up by the ids of requests.

    Only the ids are held in memory. ``name`` is the model's name in the replies, ``served`` has the names
    with system fingerprints, and ``digest`` is the sha256 (hex) of the files.

    Raises :class:`ModelError`, with file and line, for a line that is no answer, an id of another program, a
    request with two answers, and answers of several models.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.name = ""
        self.served: set[str] = set()
        self._places: dict[str, Place] = {}
        digest = hashlib.sha256()
        for file in files:
            for start, number, line in _lines_of(file):
                digest.update(line)
                if line.strip():
                    self._add(Place(file, number, start, False), line)
        self.digest = digest.hexdigest() if files else ""
        if files and not self._places:
            raise ModelError(
                f"{', '.join(map(str, files))}: found no answers; allowed: the output of a batch"
            )

    def __len__(self) -> int:
        return len(self._places)

    def find(self, name: str) -> Any | Failed | None:
        """Return the body of the reply to a request, its error, or ``None`` where there is neither."""
        place = self._places.get(name)
        if place is None:
            return None
        try:
            with place.file.open("rb") as stream:
                stream.seek(place.start)
                _, outcome = _read(place, stream.readline())
        except (OSError, ValueError, ModelError) as error:
            return Failed(error=f"{place}: changed while it was in use: {error}")
        if isinstance(outcome, str):
            return Failed(error=f"{place}: {outcome}")
        return outcome

    def others(self, names: Container[str]) -> list[Place]:
        """Return where answers stand whose ids are not among ``names``."""
        return [
            place
            for name, place in self._places.items()
            if name not in names and name != PROBE
        ]

    def _add(self, place: Place, line: bytes) -> None:
        name, body = _read(place, line)
        place = place._replace(is_error=isinstance(body, str))
        before = self._places.get(name)
        if before is not None and not (before.is_error or place.is_error):
            raise ModelError(
                f"{place}: answers the request {name} again; it has an answer at {before}"
            )
        # A request that failed may have been repeated in a later batch.
        if before is None or before.is_error:
            self._places[name] = place
        if isinstance(body, str):
            return
        if isinstance(model := body.get("model"), str) and model:
            if self.name not in ("", model):
                raise ModelError(
                    f"{place}: found an answer of {model!r} behind those of {self.name!r}; "
                    "allowed: answers of one model"
                )
            self.name = model
        self.served |= served_by(body)


def read_answers(path: Path) -> AnswerFiles:
    """Return the answers in a file, or in all files ``*.jsonl`` of a folder; raises :class:`ModelError`."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise ModelError(
            f"{path}: found no file *.jsonl; allowed: a folder with the output of batches"
        )
    try:
        stamps = tuple(
            (file, file.stat().st_size, file.stat().st_mtime_ns) for file in files
        )
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    return _read_once(stamps)


@functools.lru_cache(maxsize=4)
def _read_once(stamps: tuple[tuple[Path, int, int], ...]) -> AnswerFiles:
    return AnswerFiles([file for file, _, _ in stamps])


def _lines_of(file: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield each line of a file with its first byte and its number."""
    if not file.is_file():
        raise ModelError(
            f"{file}: is no regular file; allowed: a file of answers, or a folder of them"
        )
    start = number = 0
    try:
        with file.open("rb") as stream:
            for number, line in enumerate(lines(stream), 1):
                yield start, number, line
                start += len(line)
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ModelError(f"{file}:{number + 1}: {error}") from None


def _read(place: Place, line: bytes) -> tuple[str, dict[str, Any] | str]:
    """Return the id of a line, and the body of its reply or in words why it has none."""
    allowed = "allowed: a line of a batch's output, {custom_id, response: {status_code, body}, error}"
    try:
        data = parse(line, nan=True)
    except ValueError as error:
        raise ModelError(f"{place}: is no JSON ({error}); {allowed}") from None
    if not isinstance(data, dict):
        raise ModelError(f"{place}: found {excerpt(data)}; {allowed}")
    if "response" not in data and "method" in data:
        raise ModelError(f"{place}: is a request and not an answer; {allowed}")
    name = data.get("custom_id")
    if not isinstance(name, str) or not (_ID.fullmatch(name) or name == PROBE):
        raise ModelError(
            f"{place}: found the custom_id {excerpt(name)}, which --kb-export-requests did not write; "
            f"{allowed}"
        )
    response, wrong = data.get("response"), data.get("error")
    if not isinstance(response, dict):
        response = {}
    status, body = response.get("status_code", 200), response.get("body")
    if status == 200 and not wrong:
        if isinstance(body, dict):
            return name, failure_of(body) or body
        raise ModelError(f"{place}: holds neither an answer nor an error; {allowed}")
    wrong = wrong or body
    # OpenAI's errors are objects with a message, vLLM's are these or texts.
    while isinstance(wrong, dict) and (
        inner := wrong.get("error") or wrong.get("message")
    ):
        wrong = inner
    return (
        name,
        f"the batch has an error in place of an answer: {status}: {excerpt(wrong)}",
    )


PREFIX = "answers/"
UNSCORABLE = (
    "a file of answers has what a model wrote, and no probabilities of given tokens"
)
# The response to a request that the files do not answer.
MISSING = Failed(
    error="no answer in the file of answers (--kb-export-requests writes what has none)"
)


@record
class AnswersSpec(Spec):
    """Spec of a model whose answers are in ``path``, a file or a folder of files; ``None`` for none yet.

    ``requests`` says how requests are written: endpoint, seed, log-probabilities and chat settings.
    ``named``: the user says what the model is called; otherwise the answers do.
    """

    path: Path | None
    requests: OpenAISpec
    named: bool
    backend: str = "answers"

    @property
    def chats(self) -> bool:
        """True if whoever answers the requests puts prompts into a chat template."""
        return self.requests.chats

    @property
    def decoding(self) -> str:
        """What whoever answers the requests is told of how to choose each token of an answer."""
        return self.requests.decoding


def parse_answers(
    text: str, model_args: str = "", *, chat_template: bool = False, **run: str
) -> AnswersSpec:
    """Read ``answers/FILE`` or ``answers/FOLDER`` with the arguments of an ``openai/`` model.

    Nothing is read from the file. Raises :class:`ModelError` for a missing name, and as
    :func:`~pytest_kbrel.models.openai.spec.parse_openai` does.
    """
    text = text.strip()
    path = text.removeprefix(PREFIX) if text.startswith(PREFIX) else ""
    if not path:
        raise ModelError(
            f"{text}: no file named; the form is answers/FILE or answers/FOLDER, with the output of a batch"
        )
    args, _ = parse_backend_args(model_args, OPENAI_ARGS, "openai")
    named = "model" in args or "pretrained" in args
    requests = parse_openai(
        "openai/" + "answers" * (not named),
        model_args,
        chat_template=chat_template,
        **run,
    )
    return AnswersSpec(
        text=text,
        path=Path(path).expanduser(),
        requests=requests,
        named=named,
        notes=requests.notes,
    )


def to_export(spec: Spec) -> AnswersSpec:
    """Return the spec of a model whose requests are to be written.

    Of an ``openai/`` model all of them are, of ``answers/`` those without an answer. Raises
    :class:`ModelError` for other models.
    """
    if isinstance(spec, AnswersSpec):
        return spec
    if isinstance(spec, OpenAISpec):
        return AnswersSpec(
            text=spec.text, path=None, requests=spec, named=True, notes=spec.notes
        )
    raise ModelError(
        f"found {spec.text}; allowed: openai/NAME, where NAME is what the batch calls its model, or "
        "answers/FILE to write what its answers leave open"
    )


def check(spec: AnswersSpec) -> None:
    """Raise :class:`ModelError` for files that cannot be read, as :func:`read_answers` does.

    Raises :class:`MissingExtraError` without the package ``openai``, whose backend reads the replies.
    """
    if find_spec("openai") is None:
        raise MissingExtraError("openai", "openai", f"reading {spec.text}")
    if spec.path is not None:
        read_answers(spec.path)
