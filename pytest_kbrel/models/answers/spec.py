"""Spec of a model whose answers were made elsewhere: parsing, and checks of its files."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.answers.files import read_answers
from pytest_kbrel.models.arguments import parse_backend_args
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.openai.spec import OPENAI_ARGS, OpenAISpec, parse_openai
from pytest_kbrel.records import Failed, record

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
    args = parse_backend_args(model_args, OPENAI_ARGS, "openai")[0]
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
