"""Where a rule of a probe ends: what is just accepted, and the neighbour that is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.probes import CHUNK_FACTS, chunks_of, reliability, run_case
from pytest_kbrel.probes.base import draws_for
from pytest_kbrel.probes.monitor import published
from pytest_kbrel.probes.monitor.cells import grid_of, worst_first
from pytest_kbrel.probes.monitor.published import cleaned, trimmed_length
from pytest_kbrel.probes.reliability.distractors import option_lists, read_distractors
from pytest_kbrel.probes.reliability.shots import shots_in, with_shots
from pytest_kbrel.records import (
    Control,
    Generated,
    HeadToTailSettings,
    MonitorSettings,
    Outcome,
    ReliabilitySettings,
    Shot,
    Step,
    Table,
)
from tests.probes.conftest import CAPITAL, FRANCE, NORWAY, Oracle, make_case

PUBLISHED = MonitorSettings(negatives=2, variant="published")
POOL = tuple(f"Town {number}" for number in range(8))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("a.</s>b", "ab"),
        ("a.\nb", "ab"),
        ("a.b", "ab"),
        ("a;b", "ab"),
        ("a!b", "ab"),
        ("a,b", "ab"),
        ("a?b", "ab"),
        ("a\nb", "ab"),
        ("a</s>b", "ab"),
        ("a<pad>b", "ab"),
        (" a b ", "a b"),
        # What the script does not name stays: so does what stood behind it.
        ("a:b-c'd\"(e)", "a:b-c'd\"(e)"),
        ("a.\t", "a"),
        ("</s> a", " a"),
    ],
)
def test_what_the_published_script_deletes_of_an_answer(answer, expected):
    assert cleaned(answer) == expected


@pytest.mark.parametrize(
    ("tokens", "length"),
    [
        (["a", "b"], 2),
        (["a", "", "b"], 1),
        (["a", "\n", "b"], 1),
        (["a", "</s>", "b"], 1),
        (["a", "\n"], 1),
        (["a", "</s>"], 1),
        (["a", ""], 1),
        (["a", "<pad>"], 2),
        # The first step is no end, whatever it is; as the last of a run it is dropped.
        (["", "b"], 2),
        (["\n", "a", "b"], 3),
        (["</s>", "", "b"], 1),
        (["</s>"], 0),
        # The last and the last but one, before any end is looked for.
        (["a", "."], 1),
        (["a", ".", ""], 1),
        (["a", ".", "</s>"], 1),
        (["Norway", ".", "</s>", "</s>"], 2),
        (["Norway", ".", "", ""], 2),
        (["a", ".", "", ".", ""], 2),
        (["a", "", ".", ""], 1),
        (["a", ".", "\n", "b"], 2),
        (["a", ".", "."], 1),
        (["a", ".", ".", "."], 2),
        (["a", "b", ".", ".", ""], 3),
        (["a", ".", "b"], 2),
        (["a", ".", "\n"], 2),
        # A step is a full stop when it is nothing else.
        (["a", " ."], 2),
        (["a", "...", ""], 2),
        (["a", "!"], 2),
        ([".", "."], 0),
        ([".", ""], 0),
        (["."], 0),
        ([], 0),
    ],
)
def test_how_many_steps_the_published_script_counts(tokens, length):
    assert trimmed_length(tokens) == length


def test_the_published_script_asks_with_five_beams_and_watches_only_monitors_own_cells():
    assert published.NUM_BEAMS == 5
    step = Step(token_id=1, token="Paris", probability=0.5, watched=0.5)
    fields = {
        "token_ids": (1,),
        "finish": "stop",
        "prompt_tokens": 1,
        "prompt_digest": "d",
    }
    oracle = Oracle(
        say=lambda request: Generated(text="Paris", steps=(step,), **fields)
    )
    run_case(make_case(replace(PUBLISHED, study="full"), FRANCE), oracle, oracle.keep)
    asked = [request for requests in oracle.rounds for request in requests]
    assert {
        (request.num_beams, request.stop, request.max_new_tokens) for request in asked
    } == {(5, (), 15)}
    # 1 + 3 frames + 2 wrong contexts, then 2 further frames after each of three contexts.
    assert [request.steps for request in asked] == [True] * 6 + [False] * 6


@pytest.mark.parametrize(
    ("settings", "columns"),
    [
        (MonitorSettings(negatives=1), ()),
        (MonitorSettings(negatives=1, study="full"), ("calls:study", "tokens:study")),
    ],
)
def test_the_columns_of_monitor(settings, columns):
    fact = replace(FRANCE, negatives=("Rome",))
    others = [
        f"cell:{context}:{frame}"
        for context in ("positive", "negative1")
        for frame in (1, 2)
    ]
    assert grid_of(make_case(settings, fact)).columns == (
        *("kept", "pfd", "ird", "term", "anchor", "first_token"),
        *("ablated:0+1+2", "calls:monitor", "tokens:monitor"),
        *columns,
        *(
            "cell:positive:0",
            "cell:none:0",
            "cell:none:1",
            "cell:none:2",
            "cell:negative1:0",
        ),
        *(others if columns else ()),
    )


def test_the_columns_of_the_other_formats_come_last():
    relation = replace(CAPITAL, statements=("The capital of [X] is [Y].",))
    case = replace(
        make_case(MonitorSettings(formats="all"), FRANCE), relations=(relation,)
    )
    assert grid_of(case).columns[-3:] == ("format:wp", "format:fc_pos", "format:fc_neg")


def test_the_worst_facts_come_first_and_dropped_ones_not_at_all():
    def row(fact_id, counted, term):
        return Outcome(
            **{
                "fact_id": fact_id,
                "question": "",
                "expected": "",
                "answer": "",
                "label": "wrong",
            },
            **{"values": (counted, term), "prompt_digest": ""},
        )

    rows = (
        row("c", 1.0, 0.5),
        row("b", 1.0, 0.5),
        row("a", 1.0, 0.0),
        row("x", 0.0, 0.9),
        row("d", 1.0, 0.7),
    )
    assert worst_first(Table(columns=("kept", "term"), rows=rows)) == [
        "d",
        "b",
        "c",
        "a",
    ]


def test_the_columns_of_reliable_kb():
    own = (
        *(
            "correct",
            "wrong",
            "uninformative",
            "consistency_correct",
            "consistency_wrong",
        ),
        *("repetition", "none", "unsure"),
        *("unparsable", "choices", "choices_unread", "answered"),
    )
    fact = replace(FRANCE, negatives=POOL)
    results = {}
    for name, settings, controls in [
        ("own", {}, ()),
        ("majority", {}, (Control(fact_id=FRANCE.id, majority="Paris"),)),
        ("none", {}, (Control(fact_id=FRANCE.id, shuffled="x"),)),
        ("asked", {"controls": "asked"}, ()),
        ("written", {"distractors_from": "openai/w"}, ()),
    ]:
        case = replace(
            make_case(ReliabilitySettings(choices=1, **settings), fact),
            controls=controls,
        )
        oracle = Oracle(say=lambda request: "unsure")
        results[name] = run_case(case, oracle, oracle.keep).table.columns
    assert results["own"] == results["none"] == own
    # The model has no probabilities.
    assert (*own, "answer_prob", "first_prob", "squared_error") == reliability.COLUMNS
    assert results["majority"] == (*results["own"], "majority")
    assert results["asked"] == (
        *results["own"],
        "shuffled_right",
        "shuffled_correct",
        "shuffled_wrong",
    )
    assert results["written"] == (*results["own"], "distractors", "distractors_written")
    # Of what a model writes nobody knows the kind.
    drawn = ("distractors_drawn", "distractors_alike", "distractors_length")
    for settings, columns in (
        ({}, drawn),
        ({"distractors_from": "openai/w"}, results["written"][-2:]),
    ):
        case = make_case(ReliabilitySettings(choices=1, **settings), fact)
        oracle = Oracle(say=lambda request: "unsure")
        table = run_case(
            replace(case, alike=((FRANCE.id, 1.0),)), oracle, oracle.keep
        ).table
        assert table.columns == (*results["own"], *columns)


@pytest.mark.parametrize(("choices", "shuffled"), [(3, 3), (4, 4), (5, 4), (20, 4)])
def test_at_most_four_choices_are_offered_under_another_subject(choices, shuffled):
    settings = ReliabilitySettings(choices=choices, controls="asked")
    case = make_case(settings, replace(FRANCE, negatives=POOL))
    case = replace(
        case,
        controls=(Control(fact_id=FRANCE.id, shuffled="What is the capital of Peru?"),),
    )
    oracle = Oracle(say=lambda request: "A" if "A)" in request.prompt else "Paris")
    run_case(case, oracle, oracle.keep)
    roles = [one.ask.role for one in oracle.kept]
    assert roles[:2] == ["answer", "shuffled/answer"]
    assert sum(role.startswith("choice:") for role in roles) == choices
    assert sum(role.startswith("shuffled/choice:") for role in roles) == shuffled


@pytest.mark.parametrize(("length", "is_option"), [(200, True), (201, False)])
def test_how_long_an_option_may_be(length, is_option):
    assert bool(read_distractors("x" * length, "Paris")) is is_option


@pytest.mark.parametrize("quote", list("\"'“”‘’«»„`"))
def test_every_kind_of_quotes_is_taken_off(quote):
    assert read_distractors(f"{quote}Rome{quote}", "Paris") == ("Rome",)


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("123) Rome", "Rome"),
        ("1234) Rome", "1234) Rome"),
        ("1 Rome", "1 Rome"),
        ("1)Rome", "Rome"),
        ("(1) Rome", "Rome"),
        ("(1)2", "(1)2"),
        ("(Z) Rome", "Rome"),
        ("z) Rome", "Rome"),
        ("zz) Rome", "zz) Rome"),
        ("z. Rome", "z. Rome"),
        ("-Rome", "-Rome"),
        ("1. 2. Rome", "2. Rome"),
        ("Rome: the city", "Rome: the city"),
        ("Rome:", None),
        ("Question:", None),
        ("question: Rome", "question: Rome"),
    ],
)
def test_what_stands_before_an_option_is_taken_off_once(line, option):
    assert read_distractors(line, "Paris") == (() if option is None else (option,))


@pytest.mark.parametrize(("usable", "enough"), [(3, True), (2, False)])
def test_an_option_list_needs_three_that_differ_from_the_answer(usable, enough):
    case = make_case(ReliabilitySettings(), FRANCE)
    names = (*POOL[:usable], "paris", "Paris!")
    if not enough:
        with pytest.raises(
            ResponseError, match=r"3 distractors needed, 2 differ from 'Paris'"
        ):
            option_lists(FRANCE, "Paris", names, 1, draws_for(case, FRANCE))
        return
    (options,) = option_lists(FRANCE, "Paris", names, 1, draws_for(case, FRANCE))
    assert sorted(options[:4]) == ["Paris", "Town 0", "Town 1", "Town 2"]
    assert options[4] == "unsure"


@pytest.mark.parametrize("number", [4, 5])
def test_no_set_of_distractors_comes_twice_while_others_are_left(number):
    most = {4: 4, 5: 10}[number]
    case = make_case(ReliabilitySettings(), FRANCE)
    lists = option_lists(
        FRANCE, "Paris", POOL[:number], 2 * most, draws_for(case, FRANCE)
    )
    assert len({frozenset(options) for options in lists[:most]}) == most
    assert len(lists) == 2 * most


def test_a_writer_is_given_room_by_how_many_it_is_to_write():
    settings = ReliabilitySettings(
        choices=1, distractors=6, distractors_from="openai/w"
    )
    oracle = Oracle(say=lambda request: "Paris")
    run_case(make_case(settings, replace(FRANCE, negatives=POOL)), oracle, oracle.keep)
    (ask,) = [one.ask for one in oracle.kept if one.ask.role == "distractors"]
    assert (ask.to, ask.request.max_new_tokens, ask.request.stop) == (
        "openai/w",
        96,
        ("\nQuestion:",),
    )


FOUR = ReliabilitySettings(prompt="four-shot")


def shot_case(*shots, fact=FRANCE, settings=FOUR):
    return replace(make_case(settings, fact), repository=shots)


def alike(*scores):
    return lambda questions, examples: [scores[: len(examples)] for _ in questions]


def example(number, **more):
    return Shot(
        **({"question": f"What is number {number}?", "answer": f"{number}"} | more)
    )


@pytest.mark.parametrize(
    ("scores", "first"),
    [
        ((0.5, 0.50001), "What is number 1?"),
        ((0.5, 0.500001), "What is number 0?"),
        ((0.500001, 0.5), "What is number 0?"),
    ],
)
def test_examples_that_differ_behind_the_fifth_digit_are_equally_near(scores, first):
    case = shot_case(*map(example, range(4)))
    ((_, shots),) = with_shots(case, alike(*scores, 0.1, 0.1)).shots
    assert shots[0].question == first


@pytest.mark.parametrize(
    ("shot", "fact", "given_away"),
    [
        # Subject and answer, in whichever of the two they stand.
        (Shot(question="Where is Paris?", answer="in France"), FRANCE, True),
        (Shot(question="Where is Lyon?", answer="in France"), FRANCE, False),
        (Shot(question="Where is Paris?", answer="in Europe"), FRANCE, False),
        (Shot(question="Where is Parisville?", answer="in France"), FRANCE, False),
        (Shot(question="Who lives there?", answer="x", subject="FRANCE"), FRANCE, True),
        (Shot(question="Who lives there?", answer="x", subject="Paris"), FRANCE, False),
        # Without a subject, nothing but the question itself is.
        (
            Shot(question="Who lives there?", answer="x"),
            replace(FRANCE, subject="", question="Q?"),
            False,
        ),
        (
            Shot(question="q", answer="x"),
            replace(FRANCE, subject="", question="Q?"),
            True,
        ),
        # Where the question is all there is of the subject, the answer decides.
        (
            Shot(question="Other?", answer="PARIS"),
            replace(FRANCE, subject="Q?", question="Q?"),
            True,
        ),
        (
            Shot(question="Other?", answer="Paris Hilton"),
            replace(FRANCE, subject="Q?", question="Q?"),
            False,
        ),
        (
            Shot(question="Q Other?", answer="x"),
            replace(FRANCE, subject="Q?", question="Q?"),
            False,
        ),
    ],
)
def test_which_example_gives_an_answer_away(shot, fact, given_away):
    case = shot_case(shot, *map(example, range(4)), fact=fact)
    ((_, shots),) = with_shots(
        case, lambda questions, result: [[float(q == shot.question) for q in result]]
    ).shots
    assert (shot not in shots) is given_away


def test_examples_are_read_back_only_where_the_prompt_is_made_of_them():
    case = with_shots(
        shot_case(*map(example, range(5))), alike(0.5, 0.4, 0.3, 0.2, 0.1)
    )
    oracle = Oracle(say=lambda request: "unsure")
    run_case(case, oracle, oracle.keep)
    request = oracle.rounds[0][0]
    bare = replace(case, shots=())
    assert shots_in(bare, {FRANCE.id: request}) == case
    assert shots_in(bare, {}) is None
    assert (
        shots_in(bare, {FRANCE.id: replace(request, prompt=request.prompt + " ")})
        is None
    )
    assert (
        shots_in(replace(bare, repository=case.repository[:3]), {FRANCE.id: request})
        is None
    )
    assert shots_in(replace(bare, facts=(FRANCE, NORWAY)), {FRANCE.id: request}) is None


def test_an_example_without_an_answer_and_one_with_an_empty_one_are_two():
    shots = (
        Shot(question="a?", answer=None),
        Shot(question="b?", answer=""),
        *map(example, range(3)),
    )
    ((_, chosen),) = with_shots(shot_case(*shots), alike(*[0.5] * 5)).shots
    assert [shot.answer for shot in chosen] == ["0", "1", "2", ""]


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        (MonitorSettings(negatives=1), 1024),
        (HeadToTailSettings(), 16384),
        (ReliabilitySettings(), 512),
    ],
)
def test_how_many_facts_a_stretch_has(settings, most):
    assert CHUNK_FACTS[make_case(settings, FRANCE).probe] == most
    facts = tuple(replace(FRANCE, id=str(number)) for number in range(most + 1))
    assert [len(part.facts) for part in chunks_of(make_case(settings, *facts))] == [
        most,
        1,
    ]
    assert [
        len(part.facts) for part in chunks_of(make_case(settings, *facts[:-1]))
    ] == [most]
