"""Generation for models that think before they answer: first the thought, then the answer behind it.

Stop strings and the length limit of an answer hold behind the thought, which has a limit of its own. Each
part is an ordinary continuation of the prompt with all that was written so far.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from pytest_kbrel.models.batching import Batches
from pytest_kbrel.models.chat import ThoughtMarks
from pytest_kbrel.models.hf.batch_plan import Prompt
from pytest_kbrel.models.hf.stopping import Endings
from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.records import Failed, Generated, record

Answer = Generated | Failed


@record
class _Thought:
    """Thought so far of the prompt ``index``; ``closed`` if ``written`` ends with the closing mark."""

    index: int
    written: Ids = ()
    closed: bool = False


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
        begun = [
            _Thought(index=n)
            for n, prompt in enumerate(prompts)
            if self._thinks_at_once(prompt)
        ]
        thinking = {one.index for one in begun}
        direct = [n for n in range(len(prompts)) if n not in thinking]
        for batch in self._written(prompts, direct):
            done: list[tuple[int, Answer]] = []
            for index, answer in batch:
                if self._begins_to_think(prompts[index], answer):
                    assert isinstance(answer, Generated)
                    begun.append(self._thought(index, answer.token_ids))
                else:
                    done.append((index, answer))
            yield done
        closed: list[_Thought] = [one for one in begun if one.closed]
        unthought: list[int] = []
        for one, result in self._thought_on(
            prompts, [one for one in begun if not one.closed]
        ):
            if isinstance(result, _Thought):
                closed.append(result)
            elif result is None:
                unthought.append(one.index)
            else:
                yield [(one.index, result)]
        yield from self._written(prompts, unthought)
        behind = [_further(prompts[one.index], one.written) for one in closed]
        for written in self._write(behind, self._answers):
            yield [
                (closed[n].index, self._with_thought(answer, closed[n].written))
                for n, answer in written
            ]

    def _written(
        self, prompts: Sequence[Prompt], indices: Sequence[int]
    ) -> Batches[Generated]:
        some = [prompts[index] for index in indices]
        for batch in self._write(some, self._answers) if some else ():
            yield [(indices[n], answer) for n, answer in batch]

    def _thinks_at_once(self, prompt: Prompt) -> bool:
        # Without an opening mark nothing tells a thought from an answer before its end.
        at_once = not self._marks.opening or self._marks.opened_by(
            self._text(prompt.ids)
        )
        return at_once and _may_think(prompt)

    def _begins_to_think(self, prompt: Prompt, answer: Answer) -> bool:
        if isinstance(answer, Failed) or not _may_think(prompt):
            return False
        text = self._text(answer.token_ids).lstrip()
        # A short answer may end within the mark.
        begins = (
            answer.finish == "length" and text and self._marks.opening.startswith(text)
        )
        return bool(begins) or self._marks.begun_by(text)

    def _thought_on(
        self, prompts: Sequence[Prompt], begun: Sequence[_Thought]
    ) -> Iterator[tuple[_Thought, _Thought | Answer | None]]:
        """Yield each thought with its closed form, an answer, or ``None`` for a text that was no thought."""
        able: list[_Thought] = []
        further: list[Prompt] = []
        for one in begun:
            prompt = prompts[one.index]
            room = self._room(prompt) - len(one.written)
            if one.written[-1:] and one.written[-1] in self._answers.eos_ids:
                yield one, self._unclosed(one.written)
            elif room < 1:
                error = f"no room to think: {len(prompt.ids)} tokens of prompt, and {self._longest} are all"
                yield (
                    one,
                    self._unclosed(one.written) if one.written else Failed(error=error),
                )
            else:
                able.append(one)
                request = dataclasses.replace(
                    prompt.request,
                    stop=(self._marks.closing,),
                    max_new_tokens=room,
                    top_k=0,
                )
                further.append(
                    _further(Prompt(ids=prompt.ids, request=request), one.written)
                )
        for batch in self._write(further, self._thoughts) if further else ():
            for n, continuation in batch:
                yield (
                    able[n],
                    self._ended(prompts[able[n].index], able[n], continuation),
                )

    def _ended(
        self, prompt: Prompt, one: _Thought, continuation: Answer
    ) -> _Thought | Answer | None:
        if isinstance(continuation, Failed):
            return continuation
        written = one.written + continuation.token_ids
        if not (
            self._thinks_at_once(prompt) or self._marks.begun_by(self._text(written))
        ):
            return None
        thought = self._thought(one.index, written)
        if thought.closed:
            return thought
        if not self._marks.opening and continuation.finish == "stop":
            return None
        return self._unclosed(thought.written)

    def _thought(self, index: int, written: Ids) -> _Thought:
        """Return a thought, without what stands behind its closing mark."""
        closing = self._marks.closing
        if closing in self._text(written):
            for count, token in enumerate(written, start=1):
                able = self._thoughts.may_end(closing, token)
                if able and closing in self._text(written[:count]):
                    return _Thought(index=index, written=written[:count], closed=True)
        return _Thought(index=index, written=written)

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
        if self._longest is None:
            return self._most
        return min(
            self._most, self._longest - len(prompt.ids) - prompt.request.max_new_tokens
        )

    def _text(self, ids: Ids) -> str:
        return self._thoughts.decode(ids)


def _may_think(prompt: Prompt) -> bool:
    # Others are asked where an answer stands when nothing is thought.
    return not prompt.request.steps and prompt.request.num_beams == 1


def _further(prompt: Prompt, written: Ids) -> Prompt:
    return Prompt(ids=prompt.ids + written, request=prompt.request)
