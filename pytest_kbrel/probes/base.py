"""Base of all probes: the type of a probe, requests in the suite's wording, digests of prompts, draws, grading.

A probe is a generator that yields rounds of asks, receives their responses in the same order, and returns a
:class:`ProbeResult`. What it does between two yields is a pure function of the case and the responses so far,
so that a recorded run replays without a model.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pytest_kbrel.catalogue.probes import PROBES, probe_of_settings
from pytest_kbrel.errors import ResponseError, SuiteError
from pytest_kbrel.judges.replies import read_verdict
from pytest_kbrel.judges.rules import Judged, first_number, is_variant, judge
from pytest_kbrel.judges.words import is_unspaced
from pytest_kbrel.metrics.calibration import ANSWERED, PROBABILITIES
from pytest_kbrel.probes.prompts import (
    CHAT_CHOICE,
    CHAT_INSTRUCTIONS,
    CHOICE,
    CLOZE_INSTRUCTION,
    OWN_TEXTS,
    QA,
    Examples,
    SolvedChoices,
    Template,
    any_number,
    cloze,
    fill,
    is_unfinished,
    lettered,
    shots_in_language,
    template,
    translated,
    verdict,
)
from pytest_kbrel.records import (
    ANSWER_CUE,
    Ask,
    Case,
    Digest,
    EditsSettings,
    ExampleWording,
    Fact,
    Failed,
    Generated,
    GenerateRequest,
    MovedCells,
    Outcome,
    Pairs,
    ProbeSettings,
    Relation,
    ReliabilitySettings,
    Response,
    Scored,
    ScoreRequest,
    Table,
    changed_digest,
    read_digest,
    record,
    short_digest,
    template_error,
)

A = TypeVar("A")
R = TypeVar("R", bound=Response)
# Length of a response's prompt digest where BOS leads the prompt: 16 digits and a "b".
_WITH_BOS = 17


@record
class ProbeResult:
    """Result of a probe: a table with a row for each fact it could measure, and what went wrong.

    ``moved`` are MONITOR's: for each fact that counts, the cells in which its probability moved most.
    """

    table: Table
    errors: tuple[str, ...] = ()
    moved: tuple[MovedCells, ...] = ()


ProbeRun = Generator[tuple[Ask, ...], tuple[Response, ...], ProbeResult]


class Answers:
    """The responses of one or more rounds, by fact and role."""

    def __init__(self) -> None:
        self._responses: dict[tuple[str, str], Response] = {}

    def add(self, asks: Sequence[Ask], responses: Sequence[Response]) -> None:
        """Add one round; ``responses[i]`` answers ``asks[i]``."""
        for ask, response in zip(asks, responses, strict=True):
            self._responses[ask.fact_id, ask.role] = response

    def generated(self, fact_id: str, role: str) -> Generated:
        """Return a generated answer; ``ResponseError`` where the request failed."""
        return self.get(fact_id, role, Generated)

    def failed(self, fact_id: str, role: str) -> bool:
        """Return True if a request got no usable answer."""
        return isinstance(self._responses[fact_id, role], Failed)

    def get(self, fact_id: str, role: str, kind: type[R]) -> R:
        """Return a response of this kind; ``ResponseError`` where the request failed."""
        response = self._responses[fact_id, role]
        if isinstance(response, Failed):
            raise ResponseError(f"{fact_id} ({role}): {response.error}")
        if not isinstance(response, kind):
            raise ResponseError(
                f"{fact_id} ({role}): {kind.__name__} expected, found {response!r}"
            )
        return response


def question_of(case: Case, fact: Fact, frame: int = 0) -> str:
    """Return the question about ``fact`` in its relation's frame number ``frame``."""
    if fact.question is not None and frame == 0:
        return fact.question
    return fill(relation_of(case, fact).frames[frame], fact.subject)


def relation_of(case: Case, fact: Fact) -> Relation:
    """Return the relation of ``fact``."""
    return next(relation for relation in case.relations if relation.id == fact.relation)


def answer_type_of(case: Case, fact: Fact) -> str:
    """Return what kind of answer is asked for, empty if unknown; a fact's own goes before its relation's."""
    of_relation = (
        relation.answer_type
        for relation in case.relations
        if relation.id == fact.relation
    )
    return fact.answer_type or next(of_relation, "")


def digest_of(
    case: Case,
    fact: Fact,
    responses: Iterable[Scored | Generated],
    draws: Sequence[str] = (),
) -> str:
    """Return the digest of how ``fact`` was asked: equal digests make two outcomes comparable.

    It covers the prompts of ``responses``, in order, the settings that are not the default ones with the
    user's rules for uninformative answers and the fact's language, the accepted answers in any order with
    their type, the outdated ones where there are any, and ``draws``: what else fixes the questions and does not depend on the model's answers.
    """
    prompts = [response.prompt_digest for response in responses]
    # A "b" behind the digits says that BOS leads the prompt.
    bare = [
        prompt.removesuffix("b") if len(prompt) == _WITH_BOS else prompt
        for prompt in prompts
    ]
    digest = Digest(
        prompts=short_digest(bare),
        bos=sum(mine != given for mine, given in zip(bare, prompts, strict=True)),
        count=len(prompts),
        settings=changed_digest(case, fact.language),
        accepted=short_digest(
            [
                sorted(fact.accepted),
                answer_type_of(case, fact),
                *(fact.answer_range or ()),
                *([sorted(fact.outdated)] if fact.former else ()),
            ],
        ),
        draws=short_digest(list(draws)),
    )
    return str(digest)


def outcome_of(
    case: Case,
    fact: Fact,
    answer: Generated,
    verdict: Judged,
    values: Sequence[float],
    prompt_digest: str,
) -> Outcome:
    """Return the outcome of a fact by the answer to its question and the verdict on that."""
    # An answer that is right before it is cut short is no worse for that.
    cut_short = answer.finish == "length" and verdict.label != "correct"
    return Outcome(
        fact_id=fact.id,
        question=question_of(case, fact),
        expected=fact.object or "",
        answer=answer.text,
        label=verdict.label,
        values=tuple(values),
        prompt_digest=prompt_digest,
        truncated=cut_short and not probe_of_settings(case.settings).brief_answers,
        rule=verdict.rule,
        top=answer.top,
    )


def probability_values(
    response: Generated, *, right: bool, answered: bool
) -> dict[str, float]:
    """Return the columns of :mod:`pytest_kbrel.metrics.calibration` for one answer, 0 where there is nothing.

    ``answered`` says that the answer was right or wrong, and not uninformative.
    """
    mean, first = response.probability or 0.0, response.first_probability or 0.0
    values = (mean, first, (mean - right) ** 2 if answered else 0.0)
    return {ANSWERED: float(answered), **dict(zip(PROBABILITIES, values, strict=True))}


def without_missing(table: Table) -> Table:
    """Return the table without the columns of probabilities where an answer that needs one has none.

    What a model writes greedily never has the probability 0.
    """
    if not set(PROBABILITIES) <= set(table.columns):
        return table
    answered, mean = (
        table.columns.index(name) for name in (ANSWERED, PROBABILITIES[0])
    )
    probabilities = [row.values[mean] for row in table.rows if row.values[answered]]
    if probabilities and all(probabilities):
        return table
    return with_columns(
        table, tuple(name for name in table.columns if name not in PROBABILITIES)
    )


def with_columns(table: Table, columns: tuple[str, ...]) -> Table:
    """Return the table with these of its columns."""
    if table.columns == columns:
        return table
    indices = [table.columns.index(name) for name in columns]
    rows = (
        replace(row, values=tuple(row.values[index] for index in indices))
        for row in table.rows
    )
    return Table(columns=columns, rows=tuple(rows))


def draws_for(case: Case, fact: Fact) -> random.Random:
    """Return the fact's own random stream: the same whatever else is asked, in whatever order."""
    return random.Random(f"{case.seed}/{fact.id}")


def collect(
    facts: Iterable[Fact], outcome: Callable[[Fact], Outcome]
) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
    """Make an outcome of each fact; a fact whose responses cannot be used becomes an error instead."""
    rows, errors = [], []
    for fact in facts:
        try:
            rows.append(outcome(fact))
        except ResponseError as error:
            errors.append(str(error))
    return tuple(rows), tuple(errors)


def language_of(settings: ProbeSettings) -> str:
    """Return the language of the probe's own sentences; ``english`` where it has them in no other."""
    return getattr(settings, "instructions", "english")


def template_of(settings: ProbeSettings) -> Template:
    """Return the text around each question of a probe: the suite's, or the probe's own."""
    probe = probe_of_settings(settings)
    own = OWN_TEXTS.get((probe.name, getattr(settings, "prompt", ""))) or OWN_TEXTS.get(
        (probe.name, ""), QA
    )
    language = language_of(settings)
    text = settings.prompt_text or translated(own, language)
    return template(text, settings.answer_cue, translated(probe.cue, language))


def with_top_tokens(case: Case, request: GenerateRequest) -> GenerateRequest:
    """Return the request of the answer that stands in the outcome, with as many top tokens as wanted."""
    return replace(request, top_k=case.top_k) if case.top_k else request


def question_request(
    settings: ProbeSettings, question: str, examples: Examples
) -> GenerateRequest:
    """Return the request that asks a question behind (question, answer) examples, in text or as turns.

    Of edits it may be the beginning of a sentence, which is then to be completed.
    """
    if (
        isinstance(settings, EditsSettings)
        and settings.prompt_text is None
        and is_unfinished(question)
    ):
        if settings.prompt == "chat":
            asked = request_of(settings, CLOZE_INSTRUCTION)
            return replace(asked, lead=question)
        return request_of(settings, cloze(question) if examples else question)
    if isinstance(settings, ExampleWording) and settings.prompt == "chat":
        instruction = CHAT_INSTRUCTIONS[probe_of_settings(settings).name]
        return _chat_request(settings, instruction, question)
    return _behind(settings, template_of(settings), question, examples)


def choice_request(
    settings: ReliabilitySettings | EditsSettings,
    question: str,
    options: Sequence[str],
) -> GenerateRequest:
    """Return the request that asks a multiple-choice question with lettered options.

    Solved ones stand before it wherever the setting shows examples.
    """
    listed = lettered(options)
    if settings.prompt == "chat" and settings.choice_prompt is None:
        return _chat_request(settings, CHAT_CHOICE, f"{question}\n{listed}")
    language = settings.instructions
    own_cue = translated(ANSWER_CUE, language)
    choice = settings.choice_prompt or translated(CHOICE, language)
    text = template(choice, settings.answer_cue, own_cue)
    _, solved = shots_in_language(language)
    if settings.prompt in ("zero-shot", "chat"):
        solved = ()
    return _behind(settings, text, question, solved, listed)


def _behind(
    settings: ProbeSettings,
    text: Template,
    question: str,
    examples: Examples | SolvedChoices,
    options: str = "",
) -> GenerateRequest:
    if isinstance(settings, ExampleWording) and settings.example_style == "turns":
        turns, prompt = text.in_turns(question, examples, options)
        return request_of(settings, prompt, turns)
    return request_of(settings, text.in_text(question, examples, options))


def _chat_request(
    settings: ProbeSettings, instruction: str, prompt: str
) -> GenerateRequest:
    own = translated(instruction, language_of(settings))
    system = "\n\n".join(filter(None, (settings.system, own)))
    return replace(request_of(settings, prompt), system=system)


def request_of(
    settings: ProbeSettings, prompt: str, turns: Pairs = ()
) -> GenerateRequest:
    """Return the request of a prompt, with the stop strings and the system message of the settings."""
    return GenerateRequest(
        prompt=prompt,
        max_new_tokens=settings.max_new_tokens,
        stop=settings.own_stop if settings.stop is None else settings.stop,
        system=settings.system,
        turns=turns,
    )


def check_wording(settings: ProbeSettings) -> None:
    """Raise ``SuiteError`` where a text has not the placeholders it needs, a stop is empty, or no wording."""
    for key, (needed, allowed) in probe_of_settings(settings).places.items():
        name = "prompt_text" if key == "prompt" else key
        text = getattr(settings, name)
        if text and (wrong := template_error(text, needed, allowed)):
            raise SuiteError(f"{name}: {wrong}; found {text!r}")
    if "" in (settings.stop or ()):
        raise SuiteError("stop: found an empty text; allowed: texts that are not empty")
    if isinstance(settings, ExampleWording) and settings.wordings < 1:
        raise SuiteError(f"wordings: found {settings.wordings}; allowed: 1 and more")


# The rule of an answer whose judge's reply could not be read.
UNPARSABLE = "unparsable"
# One word is asked for; a few more are read past, and most models spend a token or two on quotes.
_REPLY_TOKENS = 16
# A date or a number with its unit has no more.
_NUMBER_WORDS = 3
# An unreadable reply is not counted as a right answer; the rule keeps it apart from an answer found wrong.
_JUDGED = {
    "correct": Judged(label="correct", rule="judge"),
    "incorrect": Judged(label="wrong", rule="judge"),
    "unparsable": Judged(label="wrong", rule=UNPARSABLE),
}


class Verdicts(dict[str, Judged]):
    """Verdicts by fact id. Looking up a fact whose judge failed raises :class:`ResponseError`."""

    def __init__(self) -> None:
        self.replies = Answers()

    def __missing__(self, fact_id: str) -> Judged:
        return _JUDGED[read_verdict(self.replies.generated(fact_id, "judge").text)]


Judging = Generator[tuple[Ask, ...], tuple[Response, ...], Verdicts]


def judged(case: Case, answers: Mapping[str, str]) -> Judging:
    """Judge the answers, by fact id; a probe writes ``verdicts = yield from judged(case, answers)``.

    Where ``case.judge`` names a model, it is asked about every informative answer that is not simply equal to
    an accepted one, nor a number that is held against the fact's range, in one round of asks with the role
    ``judge`` (Head-to-Tail, section 2.2). Facts without an accepted answer are judged by rules.
    ``verdicts[fact_id]`` raises :class:`ResponseError` where the judge gave no reply: that is an error of the
    fact, never a verdict.
    """
    facts = {fact.id: fact for fact in case.facts}
    verdicts = Verdicts()
    asks: list[Ask] = []
    for fact_id, answer in answers.items():
        by_rules = judged_by_rules(case, facts[fact_id], answer)
        if (
            case.judge == "rules"
            or not facts[fact_id].accepted
            or by_rules.label == "uninformative"
            # Whether a number lies in a range is no matter of opinion.
            or by_rules.rule in ("equal", "range")
        ):
            verdicts[fact_id] = by_rules
        else:
            asks.append(_ask(case, facts[fact_id], answer))
    if asks:
        verdicts.replies.add(asks, (yield tuple(asks)))
    for ask in asks:
        if not verdicts.replies.failed(ask.fact_id, "judge"):
            fact, answer = facts[ask.fact_id], answers[ask.fact_id]
            verdicts[fact.id] = _dated(case, fact, answer, verdicts[fact.id])
    return verdicts


def is_judged(case: Case) -> bool:
    """Return True if the verdicts of ``case`` may depend on who its judge is."""
    return PROBES[case.probe].judged and any(fact.accepted for fact in case.facts)


def judged_by_rules(case: Case, fact: Fact, answer: str, frame: int = 0) -> Judged:
    """Judge one answer to the question in ``frame`` by rules alone, whoever the case's judge is."""
    verdict = judge(
        answer,
        fact.accepted,
        question_of(case, fact, frame),
        extra=case.uninformative,
        language=fact.language,
        within=fact.answer_range,
    )
    return _dated(case, fact, answer, verdict, frame)


def _dated(
    case: Case, fact: Fact, answer: str, verdict: Judged, frame: int = 0
) -> Judged:
    """Return the verdict; where a wrong answer was right once, that it is outdated, and since when."""
    if verdict.label != "wrong" or verdict.rule == UNPARSABLE:
        return verdict
    question = question_of(case, fact, frame)
    days = [
        one.valid_until
        for one in fact.former
        if judge(answer, one.accepted, question, language=fact.language).label
        == "correct"
    ]
    if not days:
        return verdict
    return Judged(label="outdated", rule=f"was right until {max(days)}")


def is_variant_of(case: Case, fact: Fact, answer: str) -> bool:
    """Return True if the whole answer is an accepted one in another writing (Head-to-Tail, section 2.2).

    A number or year by itself that lies in the fact's range is one too.
    """
    is_short = len(answer.split()) <= _NUMBER_WORDS
    number = first_number(answer, fact.language) if is_short else None
    if fact.answer_range is not None and number is not None:
        return judged_by_rules(case, fact, answer).label == "correct"
    return is_variant(answer, fact.accepted, language=fact.language)


def _ask(case: Case, fact: Fact, answer: str) -> Ask:
    accepted = fact.accepted
    if fact.answer_range is not None:
        accepted += (any_number(*fact.answer_range),)
    return Ask(
        fact_id=fact.id,
        role="judge",
        to=case.judge,
        request=GenerateRequest(
            prompt=verdict(question_of(case, fact), accepted, answer),
            max_new_tokens=_REPLY_TOKENS,
        ),
    )


def score_request(answer: GenerateRequest, text: str) -> ScoreRequest:
    """Return the request to score a text where an answer is written: after a blank, if its script has blanks."""
    return ScoreRequest(
        prompt=answer.prompt,
        continuation=text if is_unspaced(text[:1]) else f" {text}",
        system=answer.system,
        turns=answer.turns,
        lead=answer.lead,
        rounding=answer.rounding,
    )


def in_step(
    runs: Sequence[ProbeRun], named: Callable[[Ask, int], A]
) -> Generator[tuple[A, ...], tuple[Response, ...], list[ProbeResult]]:
    """Run probes together, so that a round has the asks of all, each as ``named(ask, number of its run)``."""
    results: dict[int, ProbeResult] = {}
    replies: dict[int, Any] = dict.fromkeys(range(len(runs)))
    while True:
        asks = {}
        for number, reply in replies.items():
            try:
                asks[number] = runs[number].send(reply)
            except StopIteration as stop:
                results[number] = stop.value
        if not asks:
            return [results[number] for number in range(len(runs))]
        responses = iter(
            (yield tuple(named(ask, n) for n, of in asks.items() for ask in of))
        )
        replies = {
            n: tuple(itertools.islice(responses, len(of))) for n, of in asks.items()
        }


def in_wording(ask: Ask, number: int) -> Ask:
    """Return an ask about the question number ``number``, from 0, of several about its fact."""
    if not number:
        return ask
    return replace(ask, role=f"wording{number + 1}/{ask.role}")


def joined(
    facts: Iterable[Fact],
    results: Sequence[ProbeResult],
    wanted: Mapping[str, int],
    join: Callable[[Fact, Sequence[Outcome]], Outcome],
) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
    """Join the outcomes of each fact, as many as ``wanted``; a fact that lacks one becomes an error instead."""
    tables = [{row.fact_id: row for row in of.table.rows} for of in results]
    failures = [error for result in results for error in result.errors]

    def outcome(fact: Fact) -> Outcome:
        rows = [table[fact.id] for table in tables if fact.id in table]
        if len(rows) == wanted[fact.id]:
            return join(fact, rows)
        # One text a fact, for that is how facts without usable responses are counted.
        own = (error for error in failures if error.startswith(f"{fact.id} ("))
        without = f"{fact.id}: one of its wordings has no usable response"
        raise ResponseError(next(own, without))

    return collect(facts, outcome)


def joined_digest(texts: Sequence[str], *draws: object) -> str:
    """Return the digest of how a fact was asked several questions, from those of each; ``draws`` replace theirs."""
    digests = [digest for digest in map(read_digest, texts) if digest is not None]
    assert len(digests) == len(texts), texts
    return str(
        replace(
            digests[0],
            prompts=short_digest([digest.prompts for digest in digests]),
            bos=sum(digest.bos for digest in digests),
            count=sum(digest.count for digest in digests),
            draws=short_digest(draws) if draws else digests[0].draws,
        )
    )
