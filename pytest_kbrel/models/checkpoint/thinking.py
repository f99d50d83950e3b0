"""Generation for models that think before they answer: first the thought, then the answer behind it.

Stop strings and the length limit of an answer hold behind the thought, which has a limit of its own. Each
part is an ordinary continuation of the prompt with all that was written so far.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_kbrel.models.batching import Batches
from pytest_kbrel.models.chat import ThoughtMarks
from pytest_kbrel.models.checkpoint.endings import Endings
from pytest_kbrel.models.tokens import Ids, Prompt
from pytest_kbrel.records import Failed, Generated

Answer = Generated | Failed


class Thinker:
    """Generator of answers that lets a model finish the thoughts it begins.

    ``write`` continues prompts to endings; ``answers`` are those of answers. ``longest`` is the model's limit
    of tokens, ``None`` without one; ``most`` is the limit of a thought.
    """

    def __init__(
        self,
        write: Callable[[Sequence[Prompt], Endings], Batches[Generated]],
        marks: ThoughtMarks,
        answers: Endings,
        *,
        most: int,
        longest: int | None,
    ) -> None:
        self._write, self._marks, self._answers = write, marks, answers
        closing = answers.tokenizer.encode(marks.closing, add_special_tokens=False)
        ends = [*answers.eos_ids, *(closing if len(closing) == 1 else [])]
        self._thoughts = answers.with_ends(ends, special=True)
        self._most, self._longest = most, longest

    def ready(self, prompts: Sequence[Prompt]) -> Batches[Generated]:
        """Yield batches of each prompt's index and answer; a failure is a :class:`Failed`."""
        # What has been written of each thought so far.
        thoughts: dict[int, Ids] = {
            n: () for n, prompt in enumerate(prompts) if self._thinks_at_once(prompt)
        }
        direct = {n: p for n, p in enumerate(prompts) if n not in thoughts}
        for batch in self._written(direct):
            begun = {
                n: answer.token_ids
                for n, answer in batch
                if isinstance(answer, Generated)
                and self._begins_to_think(prompts[n], answer)
            }
            thoughts |= begun
            yield [(n, answer) for n, answer in batch if n not in begun]
        closed: dict[int, Ids] = {}
        unthought: dict[int, Prompt] = {}
        for n, result in self._thought_on(prompts, thoughts):
            if result is None:
                unthought[n] = prompts[n]
            elif isinstance(result, tuple):
                closed[n] = result
            else:
                yield [(n, result)]
        yield from self._written(unthought)
        behind = {n: _further(prompts[n], written) for n, written in closed.items()}
        for batch in self._written(behind):
            yield [(n, self._with_thought(answer, closed[n])) for n, answer in batch]

    def _written(
        self, prompts: Mapping[int, Prompt], endings: Endings | None = None
    ) -> Batches[Generated]:
        indices = list(prompts)
        for batch in (
            self._write(list(prompts.values()), endings or self._answers)
            if prompts
            else ()
        ):
            yield [(indices[n], answer) for n, answer in batch]

    def _thinks_at_once(self, prompt: Prompt) -> bool:
        # Without an opening mark nothing tells a thought from an answer before its end.
        at_once = not self._marks.opening or self._marks.opened_by(
            self._text(prompt.ids)
        )
        return at_once and _may_think(prompt)

    def _begins_to_think(self, prompt: Prompt, answer: Generated) -> bool:
        text, opening = self._text(answer.token_ids).lstrip(), self._marks.opening
        # A short answer may end within the mark.
        cut = answer.finish == "length" and text and opening.startswith(text)
        return _may_think(prompt) and (bool(cut) or self._marks.begun_by(text))

    def _thought_on(
        self, prompts: Sequence[Prompt], thoughts: Mapping[int, Ids]
    ) -> Iterator[tuple[int, Ids | Answer | None]]:
        """Yield each prompt's index with its closed thought, an answer, or ``None`` where nothing was thought."""
        further: dict[int, Prompt] = {}
        for n, written in thoughts.items():
            prompt, closed = prompts[n], self._closed(written)
            room = self._room(prompt) - len(written)
            if closed is not None:
                yield n, closed
            elif written and (written[-1] in self._answers.eos_ids or room < 1):
                yield n, self._unclosed(written)
            elif room < 1:
                error = f"no room to think: {len(prompt.ids)} tokens of prompt, and {self._longest} are all"
                yield n, Failed(error=error)
            else:
                request = dataclasses.replace(
                    prompt.request,
                    stop=(self._marks.closing,),
                    max_new_tokens=room,
                    top_k=0,
                )
                further[n] = Prompt(ids=prompt.ids + written, request=request)
        for batch in self._written(further, self._thoughts):
            for n, text in batch:
                yield n, self._ended(prompts[n], thoughts[n], text)

    def _ended(self, prompt: Prompt, written: Ids, text: Answer) -> Ids | Answer | None:
        if isinstance(text, Failed):
            return text
        written += text.token_ids
        begun = self._thinks_at_once(prompt) or self._marks.begun_by(
            self._text(written)
        )
        closed = self._closed(written) if begun else None
        if not begun or closed is not None:
            return closed
        if not self._marks.opening and text.finish == "stop":
            return None
        return self._unclosed(written)

    def _closed(self, written: Ids) -> Ids | None:
        """Return a thought up to its closing mark, ``None`` without one."""
        closing = self._marks.closing
        if closing in self._text(written):
            for count, token in enumerate(written, start=1):
                able = self._thoughts.may_end(closing, token)
                if able and closing in self._text(written[:count]):
                    return written[:count]
        return None

    def _unclosed(self, written: Ids) -> Generated:
        ended = written[-1:] and written[-1] in self._answers.eos_ids
        text = self._text(written[:-1] if ended else written).lstrip()
        return Generated(
            text="",
            token_ids=(),
            finish="length",
            prompt_tokens=0,
            prompt_digest="",
            thought=text.removeprefix(self._marks.opening).strip(),
            thought_tokens=len(written),
        )

    def _with_thought(self, answer: Answer, written: Ids) -> Answer:
        if isinstance(answer, Failed):
            return answer
        thought, _ = self._marks.split(self._text(written))
        return dataclasses.replace(answer, thought=thought, thought_tokens=len(written))

    def _room(self, prompt: Prompt) -> int:
        longest = self._most if self._longest is None else self._longest - prompt.length
        return min(self._most, longest)

    def _text(self, ids: Ids) -> str:
        return self._thoughts.decode(ids)


def _may_think(prompt: Prompt) -> bool:
    # Others are asked where an answer stands when nothing is thought.
    request = prompt.request
    return not request.steps and not request.lead and request.num_beams == 1


def _further(prompt: Prompt, written: Ids) -> Prompt:
    return Prompt(ids=prompt.ids + written, request=prompt.request)
