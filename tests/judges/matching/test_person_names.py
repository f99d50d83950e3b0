"""Names of persons: titles, suffixes, initials, short forms, surnames."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.matching.variants import (
    is_surname,
    same_person,
    strip_titles,
    titles_conflict,
)
from pytest_kbrel.judges.rules import judge
from pytest_kbrel.judges.text.tokens import read_words

TITLES = """
    Mr Mrs Ms Miss Dr Doctor Prof Professor Sir Dame Lord Lady Baron Baroness King Queen Prince
    Princess Emperor Empress Tsar Pope Saint St Reverend Rev Father President Senator Captain Capt
    General Gen Colonel Col Major Maj Lieutenant Lt Admiral Sergeant Judge Justice Chancellor
    Governor Sultan Shah Duke Duchess Count Countess Earl Hon Rabbi Sheikh Chief
    """
SUFFIXES = "Jr Sr Junior Senior PhD MD Esq OBE CBE MBE KBE"


@pytest.mark.parametrize("title", TITLES.split())
def test_a_title_stands_before_a_name(title):
    for name in (
        f"{title} Ann Lee",
        f"{title}. Ann Lee",
        f"{title.lower()} Ann Lee",
        f"Mr {title} Ann Lee",
    ):
        assert strip_titles(read_words(name)).words == ("ann", "lee")
    assert strip_titles(read_words(f"Ann {title}")).words[0] == "ann"
    # A title alone is a name.
    assert len(strip_titles(read_words(title)).words) == 1


@pytest.mark.parametrize("suffix", SUFFIXES.split())
def test_a_suffix_stands_behind_a_name(suffix):
    for name in (
        f"Ann Lee {suffix}",
        f"Ann Lee, {suffix}.",
        f"Dr Ann Lee {suffix} PhD",
    ):
        assert strip_titles(read_words(name)).words == ("ann", "lee")
    assert len(strip_titles(read_words(suffix)).words) == 1


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("Mr Hall", "Mrs Hall", True),
        ("King Mary", "Queen Mary", True),
        ("Ann Lee Jr", "Ann Lee Sr", True),
        ("Mr Lee", "Lee Jr", True),
        ("Dr Lee", "Lee", False),
        ("Lee", "Lee Jr", False),
        ("Dr Lee", "Mr Dr Lee", False),
        ("Dr Lee", "Dr Lee Jr", False),
        ("Lee Jr", "Lee Junior", False),
        ("Lee Sr", "Lee Senior", False),
        ("Capt Lee", "Captain Lee", False),
        ("Gen Lee", "General Lee", False),
        ("Col Lee", "Colonel Lee", False),
        ("Maj Lee", "Major Lee", False),
        ("Lt Lee", "Lieutenant Lee", False),
        ("Rev Lee", "Reverend Lee", False),
        ("King", "Queen", False),
    ],
)
def test_two_titles_may_contradict_each_other(one, other, differ):
    assert titles_conflict(read_words(one), read_words(other)) is differ
    assert titles_conflict(read_words(other), read_words(one)) is differ


PERSONS = [
    # answer, gold, rule
    ("G. F. Handel", "George Frideric Handel", "initials"),
    ("George Frideric Handel", "G. F. Handel", "initials"),
    ("GF Handel", "George Frideric Handel", "initials"),
    ("JRR Tolkien", "John Ronald Reuel Tolkien", "initials"),
    ("John Keats", "J. Keats", "initials"),
    ("P. Keats", "John Keats", ""),
    ("G. E. Handel", "George Frideric Handel", ""),
    ("Jim Cook", "James Cook", "nickname"),
    ("James Cook", "Jim Cook", "nickname"),
    ("J. Bill Cook", "John William Cook", "initials"),
    ("John Bill Cook", "John William Cook", "nickname"),
    ("Bill Cook", "Will Cook", ""),
    ("Bill Cook", "Robert Cook", ""),
    ("Ann Lee", "Ann Lee", "same"),
    # a middle name that one of the two leaves out
    ("Richard Rodgers", "Richard Charles Rodgers", "name"),
    ("Dick Rodgers", "Richard Charles Rodgers", "nickname"),
    ("R. Rodgers", "Richard Charles Rodgers", "initials"),
    ("Bob Rodgers", "Richard Charles Rodgers", ""),
    ("John Adams", "John Quincy Adams", "name"),
    ("John Quincy Adams", "John Adams", ""),
    ("John Q. Adams", "John Adams", "name"),
    ("George Walker Bush", "George Herbert Walker Bush", "name"),
    ("George Herbert Bush", "George Herbert Walker Bush", "name"),
    ("George Hubert Bush", "George Herbert Walker Bush", ""),
    ("George W. Bush", "George Herbert Walker Bush", ""),
    ("George Walker Bush", "George H. W. Bush", ""),
    # another surname, or none
    ("Ann Lee", "Ann Ray", ""),
    ("Ann", "Ann Lee", ""),
    ("Ann Lee", "Lee", ""),
    ("M. Y", "Malcolm Y", ""),
    ("M. May", "Mary May", ""),
    # particles belong to a name, other tying words do not
    ("L. van Beethoven", "Ludwig van Beethoven", "initials"),
    ("V. da Gama", "Vasco da Gama", "initials"),
    ("B. and Lee", "Bob and Lee", ""),
    ("B. Lee", "Bob in Lee", ""),
    # up to six words are a name
    ("B. Bea Cleo Dora Eve Lee", "Bob Bea Cleo Dora Eve Lee", "initials"),
    ("B. Bea Cleo Dora Eve Fay Lee", "Bob Bea Cleo Dora Eve Fay Lee", ""),
    ("B. Lee", "Bob Bea Cleo Dora Eve Fay Lee", ""),
    ("B. Bea Cleo Dora Eve Fay Lee", "Bob Lee", ""),
    # titles
    ("Dr. B. Lee", "Bob Lee", "initials"),
    ("B. Lee Jr.", "Dr. Bob Lee", ""),
    ("Mr. B. Lee", "Mrs. Bob Lee", ""),
    # letters that are no initials
    ("JRRT Tolkien", "John Ronald Reuel Tolkien", ""),
    ("Jrr Tolkien", "John Ronald Reuel Tolkien", ""),
    ("LA Lee", "Ludwig Anton Lee", ""),
]


@pytest.mark.parametrize(("answer", "gold", "rule"), PERSONS)
def test_two_forms_of_a_name(answer, gold, rule):
    assert same_person(read_words(answer), read_words(gold)) == rule


def test_where_the_full_name_is_asked_for_it_may_have_more_names():
    for answer, rule in (
        ("John Quincy Adams", "name"),
        ("John Quincy Ray", ""),
        ("Bob Quincy Adams", ""),
    ):
        assert (
            same_person(read_words(answer), read_words("John Adams"), full=True) == rule
        )


@pytest.mark.parametrize(
    ("answer", "gold", "result"),
    [
        ("Shakespeare", "William Shakespeare", True),
        ("Mr. Shakespeare", "William Shakespeare", True),
        ("Shakespeare", "Sir William Shakespeare", True),
        ("van Beethoven", "Ludwig van Beethoven", True),
        ("Beethoven", "Ludwig van Beethoven", True),
        ("Poe", "Edgar Allan Poe", True),
        ("Lee", "Ann Bea Cleo Dora Eve Lee", True),
        ("Lee", "Ann Bea Cleo Dora Eve Fay Lee", False),
        ("Allan Poe", "Edgar Allan Poe", False),
        ("William", "William Shakespeare", False),
        ("William Shakespeare", "William Shakespeare", False),
        ("Shakespeare", "Shakespeare", False),
        ("Li", "Jet Li", False),
        ("2", "Elizabeth II", False),
        ("123", "Agent 123", False),
        ("Lee", "Ann and Lee", False),
        ("Mrs. Lee", "Mr. Bob Lee", False),
        ("", "Ann Lee", False),
    ],
)
def test_a_surname_is_the_last_name_with_its_particles(answer, gold, result):
    assert is_surname(read_words(answer), read_words(gold)) is result


# One of each entry; some short forms stand for two names.
SHORT = """
    Abigail:Abby Albert:Al Albert:Bert Alexander:Alex Alexander:Sandy Alfred:Alf Alfred:Fred
    Andrew:Andy Andrew:Drew Anthony:Tony Arthur:Art Barbara:Barb Benjamin:Ben Bernard:Bernie
    Catherine:Kate Catherine:Cathy Charles:Charlie Charles:Chuck Christopher:Chris Clinton:Clint
    Daniel:Dan Daniel:Danny David:Dave Deborah:Debbie Donald:Don Dorothy:Dot Edward:Ed Edward:Eddie
    Edward:Ted Edward:Ned Elizabeth:Liz Elizabeth:Beth Elizabeth:Betty Eugene:Gene Francis:Frank
    Frederick:Fred Frederick:Freddie Gerald:Gerry Gerald:Jerry Gregory:Greg Harold:Harry Harold:Hal
    Henry:Harry Henry:Hank Jacob:Jake James:Jim James:Jimmy Jeffrey:Jeff Jennifer:Jen Jennifer:Jenny
    John:Johnny John:Jack Joseph:Joe Joshua:Josh Katherine:Kathy Kenneth:Ken Lawrence:Larry
    Leonard:Len Louis:Lou Margaret:Maggie Margaret:Peggy Martin:Marty Matthew:Matt Michael:Mike
    Michael:Mick Nathaniel:Nat Nicholas:Nick Patricia:Pat Patricia:Patty Patrick:Pat Patrick:Paddy
    Peter:Pete Philip:Phil Raymond:Ray Rebecca:Becky Richard:Rick Richard:Dick Robert:Bob Robert:Rob
    Robert:Bobby Ronald:Ron Samuel:Sam Stephen:Steve Steven:Steve Susan:Sue Susan:Susie
    Terence:Terry Theodore:Ted Thomas:Tom Thomas:Tommy Timothy:Tim Victoria:Vicky Vincent:Vince
    Walter:Walt William:Bill William:Billy Zachary:Zach
    """


@pytest.mark.parametrize("pair", SHORT.split())
def test_a_short_form_is_the_name(pair):
    name, short = (read_words(f"{word} Cook") for word in pair.split(":"))
    assert same_person(short, name) == same_person(name, short) == "nickname"


@pytest.mark.parametrize(
    "pair",
    ["Ted:Ned", "Fred:Alf", "Harry:Hal", "Harold:Henry", "Stephen:Steven", "Pat:Patty"],
)
def test_two_short_forms_or_two_names_may_be_two_persons(pair):
    one, other = (read_words(f"{word} Cook") for word in pair.split(":"))
    assert same_person(one, other) == same_person(other, one) == ""


@pytest.mark.parametrize(
    ("gold", "answer", "rule"),
    [
        # Given names that are other words as well, or look like an article or a numeral.
        ("William Smith", "Will Smith", "nickname"),
        ("William Smith", "It was Will Smith.", "nickname"),
        ("Will Smith", "William Smith", "nickname"),
        ("Abraham Lincoln", "A. Lincoln", "initials"),
        ("Abraham Lincoln", "It was A. Lincoln.", "initials"),
        ("A. Lincoln", "Abraham Lincoln", "initials"),
        ("Isaac Newton", "I. Newton", "initials"),
        ("Alan Alexander Milne", "A.A. Milne", "initials"),
        ("Robert Smith", "It may be Smith", "surname"),
        ("Robert Smith", "I think Smith", "surname"),
        ("Robert Smith", "I, Smith", "surname"),
        ("Robert Smith", "By Smith", "surname"),
    ],
)
def test_a_given_name_that_is_another_word_as_well(gold, answer, rule):
    result = judge(answer, [gold], "Who wrote the song?")
    assert (result.label, result.rule) == ("correct", rule)


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("Robert Smith", "Will Smith"),
        ("Robert Smith", "will smith"),
        ("Robert Smith", "WILL SMITH"),
        ("Robert Smith", "It was Will Smith."),
        ("Robert Smith", "May Smith"),
        ("Will Smith", "Bill Smith"),
        ("John Adams", "A. Adams"),
        ("John Adams", "It was A. Adams."),
        ("John Gore", "A. A. Gore"),
        ("A. A. Milne", "John Milne"),
        ("John Newton", "I. Newton"),
    ],
)
def test_the_surname_of_another_person_is_wrong(gold, answer):
    assert judge(answer, [gold], "Who wrote the song?").label == "wrong"


# What is accepted, the answer, and the rule that tells.
FORMS = [
    # A surname may have two letters.
    ("Jet Li", "J. Li", "initials"),
    # A middle name of two letters is one.
    ("John Adams", "John Wu Adams", "no rule"),
    ("John Adams", "John W Adams", "name"),
    # Two or three capitals are initials, four are a name.
    ("Joe Olaf Hans Keats", "JOH Keats", "initials"),
    ("Joe Olaf Hans Nils Keats", "JOHN Keats", "no rule"),
]


def test_a_name_in_another_form():
    result = [
        judge(answer, [gold], "Who wrote the novel?").rule for gold, answer, _ in FORMS
    ]
    assert list(zip(result, FORMS, strict=True)) == [(row[-1], row) for row in FORMS]
