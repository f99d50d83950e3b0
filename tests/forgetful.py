"""A scripted model that keeps nothing of what it was asked, for measuring what others keep."""

from __future__ import annotations

from tests.function_model import FunctionModel


class Forgetful(FunctionModel):
    """Keeps nothing of what it was asked."""

    def score(self, requests):
        answers = super().score(requests)
        self.requests.clear()
        return answers

    def generate(self, requests):
        answers = super().generate(requests)
        self.requests.clear()
        return answers
