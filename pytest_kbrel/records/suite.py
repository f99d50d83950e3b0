"""Records of suites: facts, the settings of each probe, cases, gates and waivers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Literal, Self, get_args

from pytest_kbrel.records.exchange import Pairs, record, sparse

Label = Literal["correct", "wrong", "uninformative", "outdated"]
Rule = Literal["min", "max", "max_drop", "recovery", "above_control"]
Judgement = Literal[
    "pass", "fail", "inconclusive", "not comparable", "no baseline", "invalid", "not run"
]  # fmt: skip
AnswerType = Literal["number", "person", "time", "location", "other"]
Bucket = Literal["head", "torso", "tail"]
# What a fact is to the edit of its group; paraphrases are asked with the edit, or what is to be forgotten.
Role = Literal["edit", "paraphrase", "keep", "follow", "forget"]
Worth = Literal["good", "fair", "weak"]
# Cases with these verdicts have no figures.
UNMEASURED: tuple[Judgement, ...] = ("invalid", "not run")
JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)
RULES: tuple[Rule, ...] = get_args(Rule)
ANSWER_TYPES: tuple[AnswerType, ...] = get_args(AnswerType)
BUCKETS: tuple[Bucket, ...] = get_args(Bucket)
ROLES: tuple[Role, ...] = get_args(Role)
WORTHS: tuple[Worth, ...] = get_args(Worth)
# The kinds of uninformative answers: Reliable KB, section 3.3. The kind is the rule of the verdict.
UNINFORMATIVE = ("repetition", "none", "unsure")
# The languages that the judge has rules for; facts that state none are in English.
DEFAULT_LANGUAGE = "en"
LANGUAGES = (
    DEFAULT_LANGUAGE,
    "ar",
    "de",
    "es",
    "fr",
    "hi",
    "it",
    "ja",
    "pt",
    "ru",
    "zh",
)
# As in BCP 47: "de", "pt-BR".
LANGUAGE_TAG = r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*"
# Baselines of these names are what a paper prints, not runs.
PUBLISHED = "published/"
ProbeName = Literal["monitor", "head_to_tail", "questions", "reliability", "edits"]
# What a case is about: a probe, or all probes of a suite together; ``test`` is a test in Python that failed
# before it made a case.
CaseKind = Literal[ProbeName, "pooled", "test"]


def is_published(baseline: str) -> bool:
    """Return True if the name of a baseline stands for a paper's figures."""
    return f"{baseline}/".startswith(PUBLISHED)


def base_language(tag: str) -> str:
    """Return the language of a tag: "pt" for "pt-BR"; English where nothing is stated."""
    return tag.partition("-")[0] or DEFAULT_LANGUAGE


@record
class Relation:
    """A relation and its wordings. ``[X]`` stands for the subject, ``[Y]`` for the object.

    ``frames`` are paraphrased questions, the first is the base frame; ``statements``
    are declarative. ``lead`` is the beginning of an answer in a sentence ("The capital
    of [X] is"), behind which MONITOR scores the object; empty where it scores it behind
    the question. ``id`` is a Wikidata property id where there is one. ``answer_type``
    is that of its objects, empty where it is not known. ``popularity`` is the
    predicate's own, such as the number of triples with it. ``checked`` is False until
    a native speaker has read the wordings.
    ``proxy`` is what stands for the popularity of
    its subjects, ``worth`` how well that agrees with real page views; both are empty where nobody said.
    """

    id: str
    label: str
    domain: str
    frames: tuple[str, ...]
    statements: tuple[str, ...] = ()
    answer_type: Literal["", AnswerType] = ""
    popularity: float | None = None
    lead: str = ""
    checked: bool = sparse(True)
    proxy: str = sparse("")
    worth: Literal["", Worth] = sparse("")

    @property
    def shown_label(self) -> str:
        """The label where it says more than the id: not for ``capital_of`` with the label ``capital of``."""
        repeated = re.sub(r"\W+", "_", self.label).casefold() == self.id.casefold()
        return "" if repeated else self.label

    @property
    def openings(self) -> tuple[str, ...]:
        """The statements up to ``[Y]``, of those that end with it: a model can complete these."""
        parts = (statement.partition("[Y]") for statement in self.statements)
        return tuple(
            before.rstrip() for before, _, after in parts if not after.strip(" .!?")
        )


# A question with its right answers.
Need = tuple[str, tuple[str, ...]]

# What facts may change together by: the object or the subject that they share, nothing, or another of their
# texts.
CLUSTERS = (
    "object",
    "subject",
    "fact",
    "relation",
    "dataset",
    "source",
    "answer_type",
    "group",
)


@record
class Former:
    """What was right instead of a fact's object, up to the day ``valid_until`` (ISO dates, both included).

    ``valid_from`` is empty where it is not known.
    """

    object: str
    valid_until: str
    valid_from: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def accepted(self) -> tuple[str, ...]:
        """The object and its aliases."""
        return (self.object, *self.aliases)


@record
class Fact:
    """A fact to ask about. ``object`` is ``None`` where no answer exists (unseen knowledge).

    ``negatives`` are wrong objects of the same kind: MONITOR's interfering contexts, or the distractors of
    multiple-choice questions. ``question`` overrides the relation's base frame. ``popularity`` is in the
    source's own unit, comparable within a relation only; ``bucket`` is given where the source has bucketed
    the fact itself. ``dataset`` names the dataset a fact was read from, ``duplicate_of`` the id of an earlier
    fact that says the same. ``valid_from`` and ``valid_until`` (ISO dates) are the first and the last day on
    which the object is right, ``former`` what was right before; of an unseen fact ``valid_until`` is the day
    from which its question may have an answer. Empty: ever. ``language`` is the tag ("de", "pt-BR") of what question and answer
    are in, empty for English. ``answer_range`` are the least and the greatest number, or year, that is a
    right answer, in the object's own unit; where it is given, numbers outside are wrong. ``group`` is the
    user's own name for facts that belong together. ``wordings`` are other wordings of its question.

    ``role`` is what the fact is to the edit of its ``group``, and ``old`` what the object was before it.
    ``needs`` are questions with their answers that the baseline must have right for the fact to count as a
    test. ``any_wording``: one right wording is enough where all are asked.
    ``parallel`` is what the same fact is called in all languages of a suite that compares them.
    """

    id: str
    relation: str
    subject: str
    object: str | None
    aliases: tuple[str, ...] = ()
    popularity: float | None = None
    negatives: tuple[str, ...] = ()
    question: str | None = None
    source: str = ""
    licence: str = ""
    answer_type: Literal["", AnswerType] = ""
    dataset: str = ""
    bucket: Literal["", Bucket] = ""
    duplicate_of: str = ""
    valid_until: str = ""
    language: str = ""
    answer_range: tuple[float, float] | None = None
    group: str = ""
    wordings: tuple[str, ...] = sparse(())
    role: Literal["", Role] = sparse("")
    old: str = sparse("")
    needs: tuple[Need, ...] = sparse(())
    any_wording: bool = sparse(False)
    parallel: str = sparse("")
    valid_from: str = sparse("")
    former: tuple[Former, ...] = sparse(())

    def cluster(self, by: str) -> str:
        """Return the name of the cluster that the fact is in, one of :data:`CLUSTERS`; empty if alone."""
        name = None if by == "fact" else getattr(self, by)
        return f"{by}:{name.casefold()}" if name else ""

    @property
    def accepted(self) -> tuple[str, ...]:
        """The right answers: the object and its aliases; empty for unseen knowledge."""
        return () if self.object is None else (self.object, *self.aliases)

    @property
    def outdated(self) -> tuple[str, ...]:
        """The answers that were right once."""
        return tuple(name for one in self.former for name in one.accepted)

    def on(self, day: str) -> Self | None:
        """Return the fact as it was on a day (ISO date); ``None`` where none of its objects was right then.

        What is right later is no part of it.
        """
        if self.object is None or not (
            self.former or self.valid_from or self.valid_until
        ):
            return self
        own = Former(
            object=self.object,
            valid_until=self.valid_until,
            valid_from=self.valid_from,
            aliases=self.aliases,
        )
        all_of_them = (own, *self.former)
        last = {one: one.valid_until or "9999-12-31" for one in all_of_them}
        now = [one for one in all_of_them if one.valid_from <= day <= last[one]]
        if not now:
            return None
        right = tuple(name for one in now for name in one.accepted)
        return replace(
            self,
            object=right[0],
            aliases=right[1:],
            negatives=tuple(text for text in self.negatives if text not in right),
            answer_range=self.answer_range if own in now else None,
            former=tuple(one for one in all_of_them if last[one] < day),
        )

    def questions(self, relation: Relation | None) -> tuple[str, ...]:
        """Return the wordings of its question, each once.

        Its own or the base frame comes first, then its other wordings, then the other frames.
        """
        frames = () if relation is None else relation.frames
        texts = [frame.replace("[X]", self.subject) for frame in frames]
        if self.question is not None:
            texts[:1] = [self.question]
        return tuple(dict.fromkeys((*texts[:1], *self.wordings, *texts[1:])))


@record
class Shot:
    """A worked example in front of a question; ``answer`` is ``None`` where none exists ("unsure").

    ``subject`` is what the example is about, empty where that is not known. ``valid_until`` is that of
    :class:`Fact`, for examples without an answer.
    """

    question: str
    answer: str | None
    subject: str = ""
    valid_until: str = ""


@record
class Control:
    """The controls of one fact: answers that need no knowledge, to compare the model's with.

    ``majority`` is the most frequent object of the fact's relation in the suite, empty where there is none;
    ``shuffled`` the fact's question about another subject, empty where it is not asked.
    """

    fact_id: str
    majority: str = ""
    shuffled: str = ""


# What leads an answer, unless a suite says otherwise.
ANSWER_CUE = "Answer:"


@record
class Wording:
    """Wording around a question. ``None`` stands for the probe's own wording.

    ``prompt_text`` has ``{question}`` where the question goes and may have ``{examples}`` where the examples
    do; ``answer_cue`` is the line behind it. ``system`` is the system message, and an answer ends at one of
    the ``stop`` strings.
    """

    prompt_text: str | None = None
    system: str = ""
    answer_cue: str | None = None
    stop: tuple[str, ...] | None = None

    def for_model(self, *, chat: bool) -> Self:
        """Return the settings as a model is asked that applies a chat template, or none."""
        return self

    @property
    def own_stop(self) -> tuple[str, ...]:
        """The stop strings unless the suite says otherwise: the first line break."""
        return ("\n",)

    @property
    def shown(self) -> tuple[int, int]:
        """Numbers of examples with and without an answer, chosen by likeness, before a question."""
        return (0, 0)

    @property
    def encoder(self) -> str:
        """The spec of the encoder that finds what is most alike; empty where no model does."""
        return ""

    @property
    def writer(self) -> str:
        """The spec of the model that writes distractors; empty where no model does."""
        return ""

    @property
    def follows_answers(self) -> bool:
        """True if requests depend on earlier answers of the model under test."""
        return False


@record
class ExampleWording(Wording):
    """The wording of a probe that shows examples: in the prompt's ``text``, or as earlier ``turns``.

    Each fact is asked in so many ``wordings`` of its question, over which its outcome is averaged. Of the
    settings of ``prompt`` that each probe has, ``chat`` is the question alone under the instruction as system
    message, and ``auto`` one of two: see :meth:`for_model`. ``instructions`` are the probe's own sentences:
    ``english``, or the language of the slice where a suite says ``translated``.
    """

    prompt: str = "auto"
    example_style: Literal["text", "turns"] = "text"
    wordings: int = 1
    instructions: str = sparse("english")

    def for_model(self, *, chat: bool) -> Self:
        """Return the settings with the ``prompt`` that ``auto`` stands for.

        It is ``chat`` where the model applies a chat template and the suite words nothing itself, and
        ``few-shot`` otherwise: what gave the most right answers (``benchmarks/chat_wordings.py``).
        """
        if self.prompt != "auto":
            return self
        is_worded = self.prompt_text is not None or self.answer_cue is not None
        alone = chat and not is_worded and self.example_style == "text"
        return replace(self, prompt="chat" if alone else "few-shot")


@record
class MonitorSettings(Wording):
    """Settings of MONITOR. ``negatives`` is M, the number of interfering contexts per fact.

    ``formats``: questions only, or word prediction and fact checking as well (Table 2). ``study``: the cells
    MONITOR needs, or all frames x contexts. ``ablation`` is the size of the subset of frames over which
    MONITOR is computed a second time (section 6.2).
    """

    variant: Literal["definition", "published"] = "definition"
    negatives: int = 5
    max_new_tokens: int = 15
    formats: Literal["questions", "all"] = "questions"
    study: Literal["monitor", "full"] = "monitor"
    ablation: int = 4

    @property
    def own_stop(self) -> tuple[str, ...]:
        """The published variant cuts its answers itself."""
        return () if self.follows_answers else ("\n",)

    @property
    def follows_answers(self) -> bool:
        """The published variant drops facts by its first answer."""
        return self.variant == "published"


@record
class HeadToTailSettings(ExampleWording):
    """Settings of Head-to-Tail. ``concise`` asks for brief answers and offers no "unsure" (Prompt 6)."""

    prompt: Literal["auto", "few-shot", "zero-shot", "in-domain", "concise", "chat"] = (
        "auto"
    )
    max_new_tokens: int = 32


@record
class ReliabilitySettings(ExampleWording):
    """Settings of Reliable KB: K = ``choices`` questions of five options, 3 of ``distractors`` in each.

    ``prompt`` is the setting of the slice; ``few-shot`` shows two fixed examples, one of them answered
    "unsure". ``distractors_from`` is ``facts``, or the spec of a model that
    writes them; ``retrieval`` finds the shots most like a question: ``tfidf``, or the spec of an encoder.
    ``controls``: computed from the facts and from counting only (majority answer, random option), or with the
    subject-shuffled one, which asks further questions. ``choice_prompt`` is the text of multiple-choice
    questions, with ``{question}`` and ``{options}``; ``None`` stands for the probe's own.
    """

    prompt: Literal[
        "auto", "zero-shot", "few-shot", "four-shot", "four-shot-2", "chat"
    ] = "auto"
    choices: int = 20
    distractors: int = 20
    max_new_tokens: int = 32
    distractors_from: str = "facts"
    retrieval: str = "tfidf"
    controls: Literal["counted", "asked"] = "counted"
    choice_prompt: str | None = None

    @property
    def shown(self) -> tuple[int, int]:
        """Numbers of examples with and without an answer before a question (section 3.4)."""
        return {"four-shot": (4, 0), "four-shot-2": (2, 2)}.get(self.prompt, (0, 0))

    @property
    def encoder(self) -> str:
        """The spec of the encoder, where words do not find what is most alike."""
        return "" if self.retrieval == "tfidf" else self.retrieval

    @property
    def writer(self) -> str:
        """The spec of the model that writes distractors, where the facts do not hold them."""
        return "" if self.distractors_from == "facts" else self.distractors_from

    @property
    def follows_answers(self) -> bool:
        """Multiple-choice questions are about the model's own answers."""
        return True


# Ways to round the weights of a loaded model, with the bits of each.
ROUNDINGS: Mapping[str, int] = {"int8": 8, "int4": 4}


@record
class EditsSettings(HeadToTailSettings):
    """Settings of edits: ``choices`` multiple-choice questions about what is to be forgotten.

    ``choice_prompt`` is as :class:`ReliabilitySettings` has it. ``rounding``, one of :data:`ROUNDINGS`, is that of the slice; empty where the weights stay as they are.
    ``scores``: whether the right and wrong answers are scored as well, as the authors of CounterFact and TOFU do.
    """

    prompt: Literal["auto", "few-shot", "zero-shot", "chat"] = "auto"
    choices: int = 4
    choice_prompt: str | None = None
    rounding: str = ""
    scores: Literal["none", "authors"] = "none"


ProbeSettings = (
    MonitorSettings | HeadToTailSettings | ReliabilitySettings | EditsSettings
)


# Settings that word a case's questions; reports list them only where they are not the probe's own.
WORDING_FIELDS = (
    *(field.name for field in fields(Wording)),
    *("example_style", "wordings", "choice_prompt", "instructions"),
)


OWN_WORDING = "the probe's own"


# A name in braces; other braces stand for themselves.
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def template_error(text: str, needed: Sequence[str], allowed: Sequence[str]) -> str:
    """Return what is wrong with the placeholders of a text; empty where they are right.

    Each of the ``needed`` names stands in it once, in braces; each of the ``allowed`` at most once, and in
    front of these.
    """
    names = _PLACEHOLDER.findall(text)
    for name in names:
        if name not in (*needed, *allowed):
            listed = ", ".join(f"{{{one}}}" for one in (*needed, *allowed))
            return f"unknown placeholder {{{name}}}; allowed: {listed}"
    for name in needed:
        if names.count(name) != 1:
            times = f"{names.count(name)} times" if name in names else "nowhere"
            return f"{{{name}}} must stand in it once, found {times}"
    for name in allowed:
        if names.count(name) > 1:
            return f"{{{name}}} may stand in it once, found {names.count(name)} times"
        if name in names and names.index(name) > min(map(names.index, needed)):
            return f"{{{name}}} must stand before {{{needed[0]}}}"
    return ""


@record
class Gate:
    """One demand on one metric. ``line`` is where the suite file states it.

    Of a rule that compares with a baseline, ``bound`` is what the interval must stay within for a pass,
    and ``beyond`` what the change must significantly exceed for a failure (``None``: half of what ``bound``
    allows).
    """

    metric: str
    rule: Rule
    bound: float
    line: int = 0
    beyond: float | None = None


@record
class Integrity:
    """Limits on the responses of a case; beyond one the case is invalid. They are shares, 0..1.

    ``answered`` is the least share of a case's facts with an answer that is not empty; the others are the
    most that may be: ``empty`` or ``truncated`` (cut short) of the answers, ``repeated`` of the facts with
    one and the same wrong answer, ``errored`` of the facts without usable response (these are then left out
    of all figures), ``unparsable`` of a judge's replies, ``unread`` of the replies to multiple-choice
    questions. ``below_random``: how a case fares whose informative answers are right significantly less often
    than a random object of the same relation would be.
    ``anchor_prob`` is the least mean probability (0..1) of MONITOR's primary anchors; ``first_token`` the
    least share of the facts with a right answer whose scored first token is the one that the model wrote;
    ``unmoved`` the largest share of those whose probability is the same behind all prompts. ``unasked`` is
    the largest share of the baseline's facts that the suite may have lost; beyond it the case is not comparable.
    """

    answered: float = 0.5
    empty: float = 0.5
    truncated: float = 0.5
    repeated: float = 0.9
    errored: float = 0.0
    unparsable: float = 0.1
    unread: float = 0.5
    below_random: Literal["invalid", "allowed"] = "invalid"
    anchor_prob: float = 0.01
    first_token: float = 0.5
    unmoved: float = 0.9
    unasked: float = 0.01


@record
class Waiver:
    """A known loss that a named owner accepts until a day.

    ``fact`` is the id of a fact that is left out of comparisons with the baseline; or ``case`` is the id of a
    case (``monitor[P36]``) whose failure does not fail the run. ``expires`` is an ISO date; after that day
    the waiver has ``expired``: it excuses nothing any more, and fails every case it concerns. ``line`` is
    where the suite file states it.
    """

    owner: str
    reason: str
    expires: str
    fact: str = ""
    case: str = ""
    line: int = 0
    expired: bool = False


@record
class Case:
    """One slice of a suite with one probe: what one pytest item runs.

    ``facts`` are those of this slice after sampling, each with its negatives filled in; ``relations`` are the
    ones these facts use. ``seed`` fixes every draw the probe makes. ``judge`` is who decides whether an
    answer is right: ``rules`` or the spec of a model. ``shots`` are those chosen for each fact, by fact id;
    ``repository`` is what they are chosen from. ``uninformative`` are the user's own rules: (kind, pattern).
    ``controls`` are those of the reliability probe, one for each fact. ``integrity`` are the limits of the
    suite, ``waivers`` those that concern this case or its facts. ``buckets`` are the popularity buckets of
    the facts that have one: (fact id, bucket). ``alike`` are the facts whose negatives were drawn by the kind
    of the answer, and which share (0..1) of them is of that kind: (fact id, share). ``notes`` say in words
    what a reader of the figures should know of how the facts are asked. ``cluster`` is what facts share that
    change together, one of :data:`CLUSTERS`. ``top_k`` is how many of the most probable tokens are recorded
    at the positions of answers. ``chat``: the model that is asked puts prompts into a chat template.
    ``expired`` are the ids of the facts that are left out since they may have an answer by now.
    ``own_metric``: a test in Python asks and measures it. ``dated``: some facts of the suite have former
    objects, so that answers may be outdated.
    """

    id: str
    suite: str
    probe: ProbeName
    slice: str
    facts: tuple[Fact, ...]
    relations: tuple[Relation, ...]
    settings: ProbeSettings
    gates: tuple[Gate, ...]
    seed: int = 0
    line: int = 0
    judge: str = "rules"
    repository: tuple[Shot, ...] = ()
    shots: tuple[tuple[str, tuple[Shot, ...]], ...] = ()
    uninformative: Pairs = ()
    controls: tuple[Control, ...] = ()
    integrity: Integrity = Integrity()
    waivers: tuple[Waiver, ...] = ()
    buckets: tuple[tuple[str, Bucket], ...] = ()
    alike: tuple[tuple[str, float], ...] = ()
    notes: tuple[str, ...] = ()
    cluster: str = "object"
    top_k: int = 0
    chat: bool = False
    expired: tuple[str, ...] = ()
    own_metric: bool = sparse(False)
    dated: bool = sparse(False)

    @property
    def label(self) -> str:
        """The label of the relation that the slice is; empty where it is none."""
        return next(
            (one.shown_label for one in self.relations if one.id == self.slice), ""
        )


@record
class AggregateCase:
    """A figure over several cases, decided when all of ``members`` (case ids) have run.

    With the probe ``pooled`` it is over all cases of the suite, and ``facts`` are those that it compares
    between languages, asked or not. ``notes`` are as of a :class:`Case`.
    """

    id: str
    suite: str
    probe: CaseKind
    slice: str
    members: tuple[str, ...]
    gates: tuple[Gate, ...]
    line: int = 0
    waivers: tuple[Waiver, ...] = ()
    facts: tuple[Fact, ...] = sparse(())
    notes: tuple[str, ...] = sparse(())


@record
class Suite:
    """A suite file, read and checked."""

    name: str
    path: str
    cases: tuple[Case, ...]
    aggregates: tuple[AggregateCase, ...]
    warnings: tuple[str, ...] = ()
