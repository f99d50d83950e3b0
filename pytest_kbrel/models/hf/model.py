"""Model that transformers runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.base import in_order
from pytest_kbrel.models.batching import Batcher, Batches
from pytest_kbrel.models.checkpoint.checks import Finding
from pytest_kbrel.models.checkpoint.endings import Endings
from pytest_kbrel.models.checkpoint.model import CheckpointModel, LoadedCheckpoint
from pytest_kbrel.models.hf.devices import token_budget
from pytest_kbrel.models.hf.generator import Generator
from pytest_kbrel.models.hf.rounding import rounded
from pytest_kbrel.models.hf.scorer import Scorer
from pytest_kbrel.models.hf.sharing import Probabilities, tolerance
from pytest_kbrel.models.pretrained import quiet
from pytest_kbrel.models.tokens import Pair, Prompt, common_prefix
from pytest_kbrel.printing import printable
from pytest_kbrel.records import ROUNDINGS, Generated, GenerateRequest

A = TypeVar("A")
Q = TypeVar("Q")
_QUESTIONS = tuple(
    f"Question: {question}\nAnswer:"
    for question in (
        "What is the capital of Peru?",
        "Who wrote Hamlet?",
        "In which country is the Nile Delta?",
    )
)
# By sharing mode, of scoring and of generating.
_ENGINES = {
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

    rounds = True

    def __init__(self, parts: LoadedCheckpoint, *, budget: int | None = None) -> None:
        super().__init__(parts)
        # What one of both learns of the memory the other needs not learn again.
        self._batcher = Batcher(
            budget or token_budget(parts.spec, parts.model.device.type)
        )
        # A GPU has little to do at the end of each call.
        self.pools_cases = parts.model.device.type != "cpu"
        longest = parts.max_length
        self._scorer = Scorer(parts.model, self._batcher, longest=longest)
        self._generator = Generator(
            parts.model, self._endings, self._batcher, longest=longest
        )
        self._warned: set[str] = set()

    @property
    def engine(self) -> str:
        """The sharing modes in words, and why better ones were refused; empty while none has been tried."""
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
        refused = dict.fromkeys((*self._scorer.refused, *self._generator.refused))
        return ", ".join([*words, *(f"not {reason}" for reason in refused)])

    def check_answers(self) -> Finding:
        """Return the answers to some questions; :class:`ModelError` where transformers' own search writes others.

        Tokens that are equally probable but for rounding are not told apart.
        """
        model, texts = self.parts.model, []
        asked = [
            GenerateRequest(prompt=text, max_new_tokens=16, stop=())
            for text in _QUESTIONS
        ]
        prompts = [self._prompt(request) for request in asked]
        start = 1 if model.config.is_encoder_decoder else 0
        for prompt, answer in zip(
            prompts, in_order(self._written(prompts)), strict=True
        ):
            ids = torch.tensor([prompt.ids], device=model.device)
            with quiet(), torch.inference_mode():
                plain = model.generate(
                    input_ids=ids,
                    attention_mask=torch.ones_like(ids),
                    max_new_tokens=prompt.request.max_new_tokens,
                    return_dict_in_generate=True,
                    output_logits=True,
                )
            theirs = plain.sequences[0, start or len(prompt.ids) :].tolist()
            ours = answer.token_ids if isinstance(answer, Generated) else ()
            texts.append(self._endings.decode(ours).strip().partition("\n")[0])
            place = common_prefix(ours, theirs)
            rest = (*ours[place:][:1], *theirs[place:][:1])
            if not rest:
                continue
            all_of_step = plain.logits[min(place, len(plain.logits) - 1)][0]
            logits = all_of_step[list(rest)]
            # Rounding grows with the numbers that are rounded.
            allowed = tolerance(model) * max(1.0, float(all_of_step.abs().max()))
            if len(rest) < 2 or not logits.max() - logits.min() <= allowed:
                raise ModelError(
                    f"{self.parts.spec.path}: {prompt.request.prompt!r} is answered {texts[-1]!r} here and "
                    f"{self._endings.decode(theirs)!r} by generate of transformers; please report it"
                )
        state = f"{len(texts)} as by generate of transformers: {', '.join(map(repr, texts))}"
        return Finding(part="answers", state=state)

    def close(self) -> None:
        """Free the weights; the model cannot be used any more."""
        del self.parts, self._scorer, self._generator
        vars(self).pop("_thinker", None)

    def _scores(self, pairs: Sequence[Pair]) -> Batches[Probabilities]:
        roundings = [pair.rounding for pair in pairs]
        return self._rounded(pairs, roundings, self._scorer.ready)

    def _texts(self, prompts: Sequence[Prompt], endings: Endings) -> Batches[Generated]:
        write = self._generator.with_endings(endings).ready
        roundings = [prompt.request.rounding for prompt in prompts]
        return self._rounded(prompts, roundings, write)

    def _rounded(
        self,
        items: Sequence[Q],
        roundings: Sequence[str],
        answer: Callable[[Sequence[Q]], Batches[A]],
    ) -> Batches[A]:
        """Yield what ``answer`` says of the items, each while the weights are rounded as is said of it."""
        for rounding in dict.fromkeys(roundings):
            own = [n for n, of in enumerate(roundings) if of == rounding]
            batches = answer([items[n] for n in own])
            if rounding:
                # At once: nobody else may be answered by rounded weights.
                with rounded(self.parts, ROUNDINGS[rounding]):
                    batches = iter([*batches])
            for batch in batches:
                yield [(own[n], one) for n, one in batch]

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
