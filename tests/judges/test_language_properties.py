"""What must hold for every text in every language, also a hostile one."""

from __future__ import annotations

import time

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_kbrel.judges.rules import judge
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import LANGUAGES, UNINFORMATIVE

# Words that the rules of some language treat in a special way, and signs with a meaning in patterns.
_SPECIAL = """
nicht oder Das weiß ich kein Lima l'or n'est pas mais le 22 März 1832 22.3.1832 v. Chr. no sino del L'Aquila
не а Нигер Нигерии Чехия 44 году до н. э.
我 不知道 利马 不是 或者 1832年 年 が、 リマ か キト ではなく
ليما ليست بعد ٢٢ مارس नहीं है लीमा मई
\\ ( [ ? * + . ^ $ ' " « » 「 」 , ; : ! 。 ، । ß İ ﷺ ㍻ Ⅳ ½
"""
_WORDS = st.sampled_from([*_SPECIAL.split(), "\n", "\x00"])
_TEXTS = st.one_of(st.text(max_size=40), st.lists(_WORDS, max_size=10).map(" ".join))
_LANGUAGES = st.sampled_from((*LANGUAGES, "th", "sw", "xx-Latn", "pt-BR"))


@settings(max_examples=400, deadline=None)
@given(
    answer=_TEXTS,
    golds=st.lists(_TEXTS, max_size=3),
    question=_TEXTS,
    language=_LANGUAGES,
)
@example(answer="\\1 利马", golds=["\\g<0>利马"], question="", language="zh")
@example(answer="в \\1", golds=["\\1"], question="", language="ru")
def test_every_text_gets_one_verdict(answer, golds, question, language):
    result = judge(answer, golds, question, language=language)
    assert (result.label == "uninformative") == (result.rule in UNINFORMATIVE)
    assert result.label == judge(answer, golds[::-1], question, language=language).label
    assert judge(answer, [], question, language=language).label != "correct"


@settings(max_examples=200, deadline=None)
@given(answer=_TEXTS, question=_TEXTS, language=_LANGUAGES)
def test_what_equals_an_accepted_answer_is_right_in_every_language(
    answer, question, language
):
    if (
        len(normalise(answer)) > 1
        and ":" not in answer
        and "：" not in answer
        and "=" not in answer
    ):
        assert judge(answer, [answer], question, language=language).rule == "equal"


def test_a_hostile_answer_costs_little_time_in_every_language():
    hostile = [
        "nicht ",
        "ich ",
        "22 März ",
        "не ",
        "我",
        "没有",
        "が、",
        "لا ",
        "नहीं ",
        "年",
        "1年",
        "L'",
        "je ne ",
        "(",
        "no ",
    ]
    start = time.process_time()
    for language in (*LANGUAGES, "th"):
        for text in hostile:
            judge(text * 2000, ["Lima", "利马", "Чехия"], "?", language=language)
    assert time.process_time() - start < 30
