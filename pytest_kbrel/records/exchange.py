"""Records of requests to a model and of its responses, and of a judge's error; the ``record`` decorator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, dataclass_transform

T = TypeVar("T")

# Who is asked where a run compares with a model of its own: see ``Ask.to``.
BASELINE = "baseline"
Turn = tuple[str, str]
"""A user's message with the answer to it."""
# An object of JSON.
Json = dict[str, Any]
# Names with their values, in a record that can be hashed.
Pairs = tuple[tuple[str, str], ...]
TopTokens = tuple[tuple[int, float], ...]
"""The most probable tokens of one position, the written one first: (token id, log-probability in nats)."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a frozen, slotted, keyword-only dataclass."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


def sparse(default: T) -> T:
    """Return a field of a record that files and messages have only where it is not the default."""
    return field(default=default, metadata={"sparse": True})


@record
class ScoreRequest:
    """Ask for the probability of each token of ``continuation`` after ``prompt``, teacher-forced.

    A blank that leads the continuation stands between words: it is left out where the prompt ends in white
    space or a chat template. ``system``, ``turns``, ``lead`` and ``rounding`` are as :class:`GenerateRequest`
    has them.
    """

    prompt: str
    continuation: str
    system: str = ""
    turns: tuple[Turn, ...] = ()
    lead: str = sparse("")
    rounding: str = sparse("")


@record
class GenerateRequest:
    """Ask for a greedy (or beam) continuation of ``prompt`` up to one of the ``stop`` strings.

    White space that leads the continuation ends nothing. ``system`` is the system message, ``turns`` are
    earlier questions with their answers; without a chat template both lead the prompt. ``lead`` is the given
    beginning of the answer: the model continues it, with no thought before it. ``rounding`` is how the
    weights are rounded while it is answered (``int4``), empty for as they are. With ``steps`` the
    response carries, per step of the first beam, the most probable token and its probability, and the
    probability of ``watch[k]`` at step ``k``. With ``top_k`` it carries up to so many of the most probable
    tokens at each position of the text.
    """

    prompt: str
    max_new_tokens: int
    stop: tuple[str, ...] = ("\n",)
    num_beams: int = 1
    steps: bool = False
    watch: tuple[int, ...] = ()
    system: str = ""
    turns: tuple[Turn, ...] = ()
    top_k: int = sparse(0)
    lead: str = sparse("")
    rounding: str = sparse("")


Request = ScoreRequest | GenerateRequest


@record
class Ask:
    """A request with the fact it is about and its role in the probe (``anchor``, ``frame:3``).

    ``to`` is who is asked: the model under test (empty), the one it is compared with (``BASELINE``), or the
    spec of a model that helps (a judge, a writer of distractors).
    """

    fact_id: str
    role: str
    request: Request
    to: str = ""


@record
class Step:
    """One free-running step: top-1 token id and probability; ``watched`` is that of the watched token.

    ``token`` is its text, the tokenizer's name for it where it has none ("▁", "<unk>"), and empty where it
    ends a text.
    """

    token_id: int
    token: str
    probability: float
    watched: float | None = None


@record
class Scored:
    """Probabilities (0..1, float32 softmax) of the continuation's tokens, in order."""

    probabilities: tuple[float, ...]
    token_ids: tuple[int, ...]
    prompt_tokens: int
    prompt_digest: str


@record
class Generated:
    """Generated text without prompt, stop string and special tokens. ``finish`` tells why it ended.

    ``thought`` is what the model thought before it answered, without the marks around it, in
    ``thought_tokens`` tokens (0 where a server does not say); it is no part of ``text`` and ``token_ids``.
    ``probability`` is the mean probability (0..1) of the text's tokens, the one that ended it left out, and
    ``first_probability`` that of the first; of an empty text both are that of its end. They are ``None``
    where the backend has none. ``top`` are the most probable tokens at each position of the text and of its
    end, where they were asked for.
    """

    text: str
    token_ids: tuple[int, ...]
    finish: Literal["stop", "length"]
    prompt_tokens: int
    prompt_digest: str
    steps: tuple[Step, ...] = ()
    thought: str = ""
    thought_tokens: int = 0
    probability: float | None = None
    first_probability: float | None = None
    top: tuple[TopTokens, ...] = sparse(())


@record
class Failed:
    """A request that got no usable answer. Never a score."""

    error: str


Response = Scored | Generated | Failed


@record
class Exchange:
    """One request and its response, as ``responses.jsonl`` keeps them."""

    case: str
    ask: Ask
    response: Response
