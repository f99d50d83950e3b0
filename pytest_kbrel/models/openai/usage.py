"""Tokens that a server read and wrote by its own account, and the budget of a session for them."""

from __future__ import annotations

import threading
from typing import Any

from pytest_kbrel.errors import BudgetError, ModelError
from pytest_kbrel.models.openai.spec import OpenAISpec

# A count of tokens beyond this is none.
_MOST_TOKENS = 10**12


class Usage:
    """Counter of the tokens of one model in one process, by the ``usage`` of its replies.

    ``read`` are tokens of prompts and ``written`` those of answers; ``unstated`` is the number of replies that
    do not say. Any thread may use it.
    """

    def __init__(self, spec: OpenAISpec) -> None:
        self._spec = spec
        self._lock = threading.Lock()
        self.read = self.written = self.unstated = 0

    def check(self) -> None:
        """Raise :class:`BudgetError` if nothing more may be asked."""
        spec = self._spec
        total = self.read + self.written
        cost = cost_of(self.read, self.written, spec.prices or (0, 0))
        if spec.max_tokens_total is not None and total >= spec.max_tokens_total:
            raise BudgetError(
                f"{spec.text}: the budget of {spec.max_tokens_total:,} tokens (max_tokens_total) is spent "
                f"({total:,})"
            )
        if spec.max_cost is not None and cost >= spec.max_cost:
            raise BudgetError(
                f"{spec.text}: the budget of {spec.max_cost:g} (max_cost) is spent ({cost:,.4f})"
            )

    def add(self, reply: Any) -> None:
        """Count the tokens of a reply.

        Raises :class:`ModelError` for a reply that does not state them, if there is a budget.
        """
        read, written = _tokens_in(reply) if isinstance(reply, dict) else (None, None)
        is_stated = read is not None and written is not None
        if self._spec.has_budget and not is_stated:
            raise ModelError(
                f"{self._spec.text}: the server {self._spec.base_url} states no usage (prompt_tokens and "
                "completion_tokens), so that a budget cannot be kept; allowed: neither max_tokens_total nor "
                "max_cost for this server"
            )
        with self._lock:
            self.read += read or 0
            self.written += written or 0
            self.unstated += not is_stated


def _tokens_in(reply: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return how many tokens were read and written for a reply, ``None`` where it does not say.

    No prompt has 0 tokens.
    """
    # ``meta_info`` is of SGLang's own protocol, and the last form that of llama.cpp.
    stated = reply.get("usage") or reply.get("meta_info")
    names = "prompt_tokens", "completion_tokens"
    if not isinstance(stated, dict):
        stated, names = reply, ("tokens_evaluated", "tokens_predicted")
    read, written = (count_of(stated.get(name)) for name in names)
    if written is None and read is not None:
        # Of embeddings there are no others.
        total = count_of(stated.get("total_tokens"))
        written = None if total is None else max(0, total - read)
    return read or None, written


def cost_of(read: int, written: int, prices: tuple[float, float]) -> float:
    """Return what tokens cost by the prices of a million read and of a million written."""
    return (read * prices[0] + written * prices[1]) / 1e6


def count_of(value: Any) -> int | None:
    """Return a count of tokens in a reply; ``None`` for what is none."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None
