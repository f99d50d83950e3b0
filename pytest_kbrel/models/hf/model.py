"""Model that transformers runs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from pytest_kbrel.models.batching import Batcher, Batches
from pytest_kbrel.models.checkpoint_model import CheckpointModel
from pytest_kbrel.models.hf.generator import Generator
from pytest_kbrel.models.hf.loading import LoadedCheckpoint
from pytest_kbrel.models.hf.scorer import Scorer
from pytest_kbrel.models.hf.sharing import Probabilities, SharingMode
from pytest_kbrel.models.hf.stopping import Endings
from pytest_kbrel.models.memory import token_budget
from pytest_kbrel.models.tokens import Pair, Prompt
from pytest_kbrel.printing import printable
from pytest_kbrel.records import Generated

# By sharing mode, of scoring and of generating.
_ENGINES: dict[SharingMode, tuple[str, str]] = {
    "packed": ("scored in packed rows", "written in a loop of packed rows"),
    "prefix": (
        "scored behind shared prefixes",
        "written in a loop behind shared prefixes",
    ),
    "plain": ("scored in plain batches", "written in plain batches"),
}


class HfModel(CheckpointModel):
    """A causal or encoder-decoder checkpoint in memory; made by :func:`pytest_kbrel.models.hf.backend.load`.

    Responses do not depend on the other requests of a call: probabilities agree within 1e-4 in float32, texts
    are equal. ``budget`` is in tokens a batch; by default it is that of the spec.
    """

    def __init__(
        self, parts: LoadedCheckpoint, *, shares: bool = True, budget: int | None = None
    ) -> None:
        super().__init__(parts)
        # What one of both learns of the memory the other needs not learn again.
        self._batcher = Batcher(
            budget or token_budget(parts.spec, parts.model.device.type)
        )
        longest = parts.max_length
        self._scorer = Scorer(
            parts.model, self._batcher, longest=longest, shares=shares
        )
        self._generator = Generator(
            parts.model, self._endings, self._batcher, longest=longest
        )
        self._warned: set[str] = set()

    @property
    def engine(self) -> str:
        """The sharing modes in words; empty while none has been tried."""
        # Where ``cached_property`` stores it: the attribute itself would try it now.
        scored, written = (
            vars(part).get("sharing_mode") for part in (self._scorer, self._generator)
        )
        words = []
        if scored == "prefix" and self.parts.model.config.is_encoder_decoder:
            words = ["scored behind shared encoder output"]
        elif scored:
            words = [_ENGINES[scored][0]]
        if written:
            words.append(_ENGINES[written][1])
        if words:
            words.append(f"batches of up to {self._batcher.budget} tokens")
        return ", ".join(words)

    def close(self) -> None:
        """Free the weights; the model cannot be used any more."""
        del self.parts, self._scorer, self._generator
        vars(self).pop("_thinker", None)

    def _scores(self, pairs: Sequence[Pair]) -> Batches[Probabilities]:
        return self._scorer.ready(pairs)

    def _texts(self, prompts: Sequence[Prompt], endings: Endings) -> Batches[Generated]:
        return self._generator.with_endings(endings).ready(prompts)

    def _warn(self) -> None:
        troubles = {self._scorer.trouble, self._generator.trouble} - {""}
        for trouble in troubles - self._warned:
            self._warned.add(trouble)
            warnings.warn(
                printable(
                    f"a shared batch failed, and plain ones answered: right, but slow ({trouble})"
                ),
                RuntimeWarning,
                stacklevel=3,
            )
