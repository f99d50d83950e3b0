"""A served model without a server, and what is asked of it in runs that keep its answers."""

from __future__ import annotations

from dataclasses import replace

from pytest_kbrel.models.base import ServedModel
from pytest_kbrel.models.cache import journal
from pytest_kbrel.models.cache.session import CachingModel
from pytest_kbrel.records import Failed, GenerateRequest
from tests.function_model import FunctionModel


class Served(FunctionModel, ServedModel):
    """A model of which nothing is known but what its server says."""

    def __init__(
        self,
        answers=str.upper,
        *,
        name="judge",
        about="",
        replies=(),
        decoding="greedy",
        **more,
    ):
        super().__init__(answers, **more)
        self.served, self._about, self._name = set(), about, name
        self._replies, self._decoding = replies, decoding

    def describe(self):
        return replace(
            super().describe(),
            spec=f"openai/{self._name}",
            backend="openai",
            weights_digest="",
            architecture=self._name,
            decoding=self._decoding,
        )

    def about(self):
        return self._about

    def generate(self, requests):
        self.served |= set(self._replies)
        return super().generate(requests)


def ask(number, **more):
    return GenerateRequest(
        **({"prompt": f"question {number}", "max_new_tokens": 4} | more)
    )


def run_requests(store, run, *requests, model=None):
    """Ask a model in a run; return its journal."""
    model = model or Served()
    kept = journal.begin(store, run, model)
    CachingModel(model, store, journal=kept).generate(requests)
    return kept


def answered(store, kept, *requests):
    """Return the numbers of the requests that a journal answers, and note them as used."""
    model = Served(fails=lambda prompt: "is asked")
    responses = CachingModel(model, store, journal=kept).generate(requests)
    return [at for at, of in enumerate(responses) if not isinstance(of, Failed)]


def rows(store, what):
    return store.rows(what)
