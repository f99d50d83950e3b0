"""How long a server may take for a try, how much it may reply, and the errors where it goes beyond that."""

from __future__ import annotations

from pytest_kbrel.records import record

# What stands in a reply beside its answer: names, counts, and what else a server likes to tell.
_ENVELOPE_BYTES = 64_000
_LIST_BYTES = 8_000_000
_LIST_SECONDS = 10.0


@record
class Limits:
    """What a try may take: ``seconds``, and a reply of ``size`` bytes, which ``told`` says in words."""

    seconds: float
    size: int
    told: str


class ReplyError(Exception):
    """A reply that is not taken; its message says what it is that it may not be."""


class RedirectError(ReplyError):
    """A server that sends us elsewhere; its message goes on after the server's name."""


def limits_for(seconds: float, count: int, each: int, one: str) -> Limits:
    """Return the limits of a question for ``count`` things of up to ``each`` bytes.

    ``one`` is what such a thing is called, such as "token".
    """
    size = _ENVELOPE_BYTES + each * count
    told = (
        f"{_kilobytes(size)}, the most for {count} {one}{'s' * (count > 1)}: "
        f"{_kilobytes(_ENVELOPE_BYTES)} and {_kilobytes(each)} more for each"
    )
    return Limits(seconds=seconds, size=size, told=told)


def limits_of_list(seconds: float) -> Limits:
    """Return the limits of the list of models, which nobody waits for long."""
    return Limits(seconds=min(seconds, _LIST_SECONDS), size=_LIST_BYTES, told=_kilobytes(_LIST_BYTES))


def _kilobytes(size: int) -> str:
    return f"{size // 1000} kB"
