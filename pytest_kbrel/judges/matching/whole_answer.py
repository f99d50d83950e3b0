"""Whether an answer as a whole is another way of writing an accepted one.

Head-to-Tail (arXiv 2308.10168, section 2.2) adds hand-made variants to the accepted answers before it scores
how alike they are: "W Shakespeare" is then as good as "William Shakespeare".
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.judges.language import is_english, put_in_english
from pytest_kbrel.judges.matching.numbers import is_negative
from pytest_kbrel.judges.matching.parsing import APPROXIMATE, quantity, read_gold, read_question
from pytest_kbrel.judges.matching.variants import STRICT, full_name
from pytest_kbrel.judges.text.dates import as_dates
from pytest_kbrel.judges.text.lexicon import FUNCTION, GIVEN, PARTICLES
from pytest_kbrel.judges.text.tokens import LONGEST, read_words

# A full name says more than the surname.
_RULES = [rule for rule in STRICT if rule is not full_name]
# "And" and "of" stand in names: "Chile's Easter Island", "Easter Island of Chile".
_LEADING_IN = (FUNCTION | APPROXIMATE) - GIVEN - PARTICLES - {"and"}


def is_variant(
    answer: str, accepted: Sequence[str], question: str = "", answer_type: str = "", *, language: str = ""
) -> bool:
    """Tell whether all of ``answer`` is one of ``accepted`` in another writing; a sentence with it is not.

    The rules are those of :func:`pytest_kbrel.judges.rules.judge` that hold for the whole of an answer. What
    leads in ("It is Lima", "about 7", "in 1990") is no part of a writing.
    """
    if not is_english(language):
        (answer, question), accepted = put_in_english((answer, question), accepted, language)
    asked = read_question(question, answer_type)
    said = read_words(answer)
    if not said.words:
        return False
    dates, number = as_dates(answer[:LONGEST]), quantity(said.words)
    for gold in map(read_gold, accepted):
        if not _LEADING_IN.isdisjoint(word for word in said.words if word not in read_words(gold.text).words):
            continue
        if gold.dates or gold.number is not None or gold.period is not None:
            if (gold.dates and dates == gold.dates) or (
                gold.number and number == gold.number and is_negative(gold.text) == is_negative(answer)
            ):
                return True
        elif gold.words and any(rule(said, gold, asked) for rule in _RULES):
            return True
    return False
