"""Answers in ten languages beside English: the phrases written for them, and each rule on its own."""

from __future__ import annotations

from importlib import resources
from itertools import chain

import pytest
import yaml

from pytest_kbrel.judges.abstention import uninformative_kind
from pytest_kbrel.judges.language import inflected_pattern, language_of, to_english
from pytest_kbrel.judges.rules import is_variant, judge
from pytest_kbrel.judges.text.dates import in_english_dates
from pytest_kbrel.judges.text.tokens import fold_letters
from pytest_kbrel.records import LANGUAGES
from tests.judges.phrases import HALVES, phrases
from tests.judges.phrases import LANGUAGES as WRITTEN

ALL = [
    phrase
    for language in WRITTEN
    for half in HALVES
    for phrase in phrases(language, half)
]
# What the rules get wrong: a denial of one person in front of the name of another.
KNOWN = {"Paul Durand n'a pas gagné, c'est Marie Dubois."}
OTHERS = tuple(language for language in LANGUAGES if language != "en")


def test_there_are_phrases_for_every_language():
    assert set(WRITTEN) == set(LANGUAGES)


@pytest.mark.parametrize(
    "phrase", ALL, ids=lambda phrase: f"{phrase.language}-{phrase.answer[:30]}"
)
def test_a_phrase_is_judged_as_what_it_is(phrase):
    assert phrase.recognised == (phrase.answer not in KNOWN), phrase.judged


@pytest.mark.parametrize(
    "phrase", [phrase for phrase in ALL if phrase.group == "abstains"]
)
def test_who_abstains_does_so_whether_there_is_an_answer_or_not(phrase):
    assert (
        judge(phrase.answer, [], phrase.question, language=phrase.language).label
        == "uninformative"
    )


@pytest.mark.parametrize(
    "phrase", [phrase for phrase in ALL if phrase.group == "denies"]
)
def test_a_denial_is_no_right_answer_where_there_is_one(phrase):
    assert (
        judge(phrase.answer, ["Lima"], "Who?", language=phrase.language).label
        != "correct"
    )


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize(
    "answer", ["unsure", "I don't know.", "As an AI, I cannot know that.", "N/A"]
)
def test_english_ways_of_declining_count_in_every_language(language, answer):
    assert judge(answer, ["Lima"], "?", language=language).label == "uninformative"


@pytest.mark.parametrize("language", OTHERS)
def test_a_file_of_a_language_has_all_its_parts_and_no_pattern_that_matches_everything(
    language,
):
    text = (
        resources.files("pytest_kbrel.judges")
        .joinpath(f"languages/{language}.yaml")
        .read_text("utf-8")
    )
    assert {
        "unsure",
        "denials",
        "lacks",
        "counting",
        "frames",
        "hedges",
        "asides",
        "contrast",
        "labels",
    } < set(yaml.safe_load(text))
    for pattern in chain.from_iterable(language_of(language).patterns.values()):
        assert not any(map(pattern.search, ("", "lima"))), pattern.pattern


def test_a_region_and_english_itself_change_nothing():
    for tag in ("pt", "pt-BR", "pt-PT"):
        assert judge("A capital não é Lima.", ["Lima"], language=tag).rule == "negated"
    for tag in ("", "en", "en-GB"):
        assert judge("A capital não é Lima.", ["Lima"], language=tag).label == "correct"


@pytest.mark.parametrize("language", ["", "en", "fr", "ja"])
@pytest.mark.parametrize(
    "answer",
    [
        "Je ne sais pas.",
        "Das weiß ich nicht.",
        "No lo sé.",
        "Não sei.",
        "Non lo so.",
        "Не знаю.",
        "我不知道。",
    ],
)
def test_an_abstention_in_another_language_is_one(language, answer):
    assert judge(answer, ["Lima"], "Which city?", language=language).rule == "unsure"


@pytest.mark.parametrize(
    "answer",
    [
        "Je ne sais pas, mais c'est Lima.",
        "Ich weiß nicht, aber es ist Lima.",
        "No, it is Lima.",
    ],
)
def test_what_goes_on_behind_it_is_an_answer(answer):
    assert judge(answer, ["Lima"], "Which city?").label != "uninformative"


@pytest.mark.parametrize(
    "answer", ["No.", "Nicht Lima", "Das Boot", "Ich und du", "La mer", "Non-stop"]
)
def test_a_word_of_another_language_is_no_abstention(answer):
    assert judge(answer, ["Cuzco"], "Which one?").label == "wrong"


@pytest.mark.parametrize(
    ("question", "answer", "label"),
    [
        (
            "Who built the bridges of Ombrelvane?",
            "There are no bridges in Ombrelvane.",
            "uninformative",
        ),
        (
            "How many bridges does Ombrelvane have?",
            "There are no bridges in Ombrelvane.",
            "wrong",
        ),
        (
            "How many bridges does Ombrelvane have?",
            "There is no town called Ombrelvane.",
            "uninformative",
        ),
        (
            "Who won in 2032?",
            "The games have not been held yet, but Norway won the last ones.",
            "wrong",
        ),
        (
            "Who wrote it?",
            "It was written by John Doe, who has never published anything.",
            "wrong",
        ),
        ("Who wrote it?", "The village is made up of farms.", "wrong"),
        ("Who wrote it?", "It was invented in 1920 by John Doe.", "wrong"),
        ("Who won in 2032?", "In 2032, no such election took place.", "uninformative"),
    ],
)
def test_a_denial_counts_where_it_is_what_the_answer_says(question, answer, label):
    assert judge(answer, [], question).label == label


@pytest.mark.parametrize(
    "answer",
    [
        "The 2032 election hasn't happened yet.",
        "As of my last knowledge update in September 2021, the 2032 elections haven't been held.",
        "There's no such place as Ombrelvane.",
        "Ombrelvane does not appear to be a real place.",
        "Ombrelvane doesn't seem to exist.",
        "I don't think Ombrelvane exists.",
        "I'm sorry, but Ombrelvane does not exist.",
        "Unfortunately, there is no such person.",
        "It's a made-up name.",
        "The name seems to be invented.",
        "Your question assumes something that is not true.",
        "That is a trick question; there is no such country.",
        "The winner has yet to be determined.",
        "No answer exists.",
        "It remains to be seen.",
        "There has been no election in 2032.",
        "None; Ombrelvane doesn't exist.",
    ],
)
def test_who_denies_what_the_question_takes_for_granted_does_not_hallucinate(answer):
    assert (
        judge(answer, [], "Who won the 2032 elections in Ombrelvane?").label
        == "uninformative"
    )


@pytest.mark.parametrize(
    "answer",
    [
        "As of my knowledge cutoff, John Doe.",
        "The Man Who Never Was",
        "No Country for Old Men",
        "Never Let Me Go",
        "No One Has Ever Seen It Like That",
        "The Yet To Come party",
        "They were not held in May but in June.",
        "Ann Lee, who is not real popular.",
        "The Fictional Party won.",
        "He has no children but John.",
    ],
)
def test_who_names_something_does_not_deny(answer):
    assert (
        judge(answer, [], "Who won the 2032 elections in Ombrelvane?").label == "wrong"
    )


def test_a_denial_of_what_is_so_is_a_wrong_answer():
    assert uninformative_kind("No such person exists.") == ""
    assert uninformative_kind("No such person exists.", unanswerable=True) == "unsure"
    assert judge("No such person exists.", ["Lima"]).label == "wrong"


@pytest.mark.parametrize(
    ("language", "written", "english"),
    [
        ("de", "am 22. März 1832", "am 22 March 1832"),
        ("de", "am 3.4.1832", "am 3 April 1832"),
        ("de-AT", "3. Jänner 1832", "3 January 1832"),
        ("de", "im Jahr 753 v. Chr.", "im Jahr 753 BC"),
        ("fr", "le 1er mars 1832", "le 1 March 1832"),
        ("es", "el 22 de marzo de 1832", "el 22 March 1832"),
        ("it", "il 1º marzo 1832", "il 1 March 1832"),
        ("pt", "em março de 1832", "em March 1832"),
        ("ru", "22 марта 1832 года", "22 March 1832"),
        ("ru", "в 44 году до н. э.", "в 44 BC"),
        ("zh", "1832年3月22日", "22 March 1832"),
        ("zh", "公元前44年", "44 BC"),
        ("ja", "1832年3月", "March 1832"),
        ("ja", "10年間", "10年間"),
        ("ar", "22 أبريل 1832", "22 April 1832"),
        ("ar", "22 آذار 1832", "22 March 1832"),
        ("hi", "22 मई 1832", "22 May 1832"),
        # CLDR knows more languages than the judge, and some tags are no language.
        ("sv", "22 mars 1832", "22 March 1832"),
        ("xx", "22 mars 1832", "22 mars 1832"),
        # In China the year is first, so that the order of two numbers is open.
        ("zh", "3.4.1832", "3.4.1832"),
        ("de", "die Version 3.40.1832", "die Version 3.40.1832"),
        ("de", "im März", "im März"),
    ],
)
def test_dates_are_put_as_english_writes_them(language, written, english):
    assert (
        " ".join(in_english_dates(fold_letters(written), language).split()) == english
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("أحمد", "احمد"),
        ("مُحَمَّد", "محمد"),
        ("محـــمد", "محمد"),
        ("फ़्रेंच", "फ्रेंच"),
        ("हाँ", "हां"),
        ("Орёл", "Орел"),
    ],
)
def test_letters_that_are_written_in_two_ways_are_one(one, other):
    assert fold_letters(one) == fold_letters(other)
    assert judge(one, [other]).label == "correct"


@pytest.mark.parametrize(
    ("language", "digits"), [("ar", "١٨٣٢"), ("hi", "१८३२"), ("ja", "１８３２")]
)
def test_digits_of_every_script_are_digits(language, digits):
    assert judge(digits, ["1832"], language=language).label == "correct"
    assert judge(digits, ["1833"], language=language).label == "wrong"


@pytest.mark.parametrize(
    ("language", "gold", "answer", "label"),
    [
        ("zh", "毛泽东", "他是毛泽东。", "correct"),
        ("zh-Hant", "利馬", "首都是利馬。", "correct"),
        ("zh", "几内亚", "位于几内亚比绍。", "wrong"),
        ("zh", "金", "这是金属。", "wrong"),
        ("ja", "ギニア", "パプアニューギニアです。", "wrong"),
        ("ja", "ギニア", "首都はギニアの町です。", "correct"),
        ("ja", "東京", "東京か京都です。", "wrong"),
        ("th", "ลิมา", "เมืองหลวงคือลิมา", "correct"),
        ("th", "ลิมา", "ไม่ใช่ลิมา", "wrong"),
        ("ar", "الصين", "تقع بالصين", "correct"),
        ("hi", "दिल्ली", "नई दिल्ली", "wrong"),
        ("hi", "नई दिल्ली", "राजधानी नई दिल्ली है।", "correct"),
        # Without the language words end where spaces are.
        ("", "利马", "首都是利马。", "wrong"),
    ],
)
def test_an_accepted_answer_is_found_without_word_boundaries(
    language, gold, answer, label
):
    assert judge(answer, [gold], "?", language=language).label == label


@pytest.mark.parametrize(
    ("gold", "answer", "label"),
    [
        ("Россия", "Она находится в России.", "correct"),
        ("Австрия", "Она находится в Австралии.", "wrong"),
        ("Нигер", "Она находится в Нигерии.", "wrong"),
        ("Нигерия", "Она находится в Нигере.", "wrong"),
        ("Китай", "Он живёт в Китае.", "correct"),
        ("Российская Федерация", "Он живёт в Российской Федерации.", "correct"),
        ("Чехия", "Не в Чехии, а в Польше.", "wrong"),
        ("Перу", "Он живёт в Перу.", "correct"),
    ],
)
def test_russian_cases_of_the_singular_are_found(gold, answer, label):
    assert judge(answer, [gold], "Где?", language="ru").label == label


def test_forms_are_known_of_russian_and_arabic_only():
    assert inflected_pattern("Чехия", "de") == ""
    assert inflected_pattern("1832", "ru") == ""
    assert inflected_pattern("ارض", "ar") == ""


@pytest.mark.parametrize(
    ("language", "question", "gold", "answer", "label"),
    [
        ("de", "Wer schrieb es?", "Goethe", "Das war der Dichter Goethe.", "correct"),
        ("de", "Welches Land?", "Sudan", "Südsudan", "wrong"),
        ("de", "Was ist es?", "Keine Ahnung", "Keine Ahnung", "correct"),
        ("de", "Welche Stadt?", "Lima", "DIE HAUPTSTADT IST NICHT LIMA", "wrong"),
        ("fr", "Quel pays ?", "Guinée", "La Guinée-Bissau", "wrong"),
        ("fr", "Quel métal ?", "or", "L'or.", "correct"),
        # A model may answer in English whatever it is asked in.
        ("fr", "Quelle ville ?", "Lima", "Lima or Cusco", "wrong"),
        ("pt", "Que cidade?", "Lima", "The capital is not Lima.", "wrong"),
        ("de", "Wer war es?", "Ann Lee", "It was Ann Lee.", "correct"),
        ("es", "¿Qué ciudad?", "Salvador", "El Salvador", "wrong"),
        ("es", "¿Qué ciudad?", "La Paz", "Es La Paz.", "correct"),
        ("pt", "Em que país?", "Brasil", "Fica no Brasil.", "correct"),
        ("it", "Quale città?", "L'Aquila", "È L'Aquila.", "correct"),
    ],
)
def test_small_words_are_those_of_the_language_and_names_stay_names(
    language, question, gold, answer, label
):
    assert judge(answer, [gold], question, language=language).label == label


def test_a_label_of_the_language_is_no_part_of_the_answer():
    assert judge("Antwort: Lima", ["Lima"], language="de").rule == "equal"
    assert judge("答案：利马", ["利马"], language="zh").rule == "equal"


def test_a_whole_answer_in_another_language_is_a_variant_of_an_accepted_one():
    assert is_variant("22. März 1832", ["1832-03-22"], language="de")
    assert not is_variant("22. März 1832", ["1832-03-22"])
    assert not is_variant("22. Mai 1832", ["1832-03-22"], language="de")


def test_a_language_without_rules_leaves_the_words_as_they_are():
    assert to_english(["Mji mkuu ni Lima."], ["Lima"], "sw") == (
        ["Mji mkuu ni Lima."],
        ["Lima"],
    )
    assert judge("Mji mkuu ni Lima.", ["Lima"], language="sw").label == "correct"
