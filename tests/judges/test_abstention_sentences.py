"""Sentences that say nothing, wording by wording, and near ones that are answers."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.abstention import uninformative_kind


def either(words):
    """Return the wordings of a list; "-" stands for none, "_" for a space."""
    return [word.replace("-", "").replace("_", " ") for word in words.split()]


def kind(text):
    return uninformative_kind(" ".join(text.split()), "What is the capital of Peru?")


# A sentence with places, and the wordings of each place: the first of each makes the sentence from which the
# others differ in one place.
UNSURE = [
    ("{}", "unsure not_sure no_idea not_known idk dunno"),
    (
        "{} {} {} {} unsure",
        "I I_would I_will I'd I'll",
        "say answer go_with have_to_say",
        "- that",
        "- it_is it's",
    ),
    (
        "not sure {} it",
        "about of if whether what who whom whose which where when why how on at as that because since for "
        "sorry i with regarding exactly either here yet anymore lol man bro",
    ),
    ("not sure {}", "it this"),
    (
        "{}",
        "no_clue not_certain uncertain hard_to_say hard_to_tell who_knows no_one_knows I_wonder "
        "good_question cannot_say",
    ),
    (
        "{} {} wish {} I {} {} {}",
        "I -",
        "- only",
        "- that",
        "- only",
        "knew could_tell could_say could_answer",
        "- that this you it answer for_sure more but_I_do_not sorry",
    ),
    (
        "{} {} knows {}",
        "no_one nobody no_body only_God",
        "- really actually exactly",
        "for_sure for_certain exactly yet that this who what where when",
    ),
    (
        "{} {} {} {}",
        "- it_is answer_is that_is this_is it_remains it's that's there_is there's",
        "- currently still as_yet yet presently",
        "unknown unsure undetermined undecided unclear unspecified uncertain not_known not_yet_known "
        "not_sure not_determined not_decided not_announced not_clear yet_to_be_determined "
        "yet_to_be_decided yet_to_be_announced yet_to_be_known to_be_determined to_be_decided "
        "to_be_announced tba tbd impossible_to_say impossible_to_tell impossible_to_know "
        "impossible_to_determine impossible_to_predict",
        "- to_me to_us at_this_time at_present yet as_of_now for_now so_far to_public publicly now",
    ),
    (
        "so {} {} {} it",
        "I_am I'm im I_am_still I'm_still we_are we're",
        "- afraid really currently still just only also",
        "not_sure not_entirely_sure not_completely_sure not_quite_sure not_really_sure not_certain "
        "not_aware not_familiar not_able unsure uncertain unable unaware unfamiliar AI language_model",
    ),
    (
        "so {} {} {} {} {} it",
        "I we",
        "- really honestly currently simply still also",
        "do_not don't dont cannot can_not can't cant could_not couldn't am_unable_to 'm_unable_to "
        "am_not_able_to 'm_not_able_to did_not didn't",
        "- really actually currently yet",
        "know say answer tell provide determine find verify predict confirm recall remember identify "
        "guess access browse",
    ),
    (
        "so {} {} {} {}",
        "I we",
        "- really honestly currently simply still also",
        "cannot can_not can't cant could_not couldn't am_unable_to 'm_unable_to am_not_able_to "
        "'m_not_able_to",
        "help help_you help_with_it help_on_it help_there help_here assist comment speculate respond "
        "comply retrieve_it look_up_it give_answer give_you_answer give_any_answer give_specific_answer "
        "give_that_answer give_this_answer give_exact_answer give_accurate_answer give_correct_answer "
        "offer_information share_details give_data",
    ),
    (
        "so {} {} {} {} {} {} {}",
        "I we",
        "- really honestly currently simply still also unfortunately",
        "do_not don't dont did_not didn't",
        "- really actually currently yet",
        "have possess hold",
        "- any enough sufficient specific direct to up real time date current live latest recent exact "
        "precise personal further more much that this those these such necessary required relevant "
        "reliable access",
        "information info data knowledge details detail access idea clue context answer date record "
        "records memory capability ability opinion opinions belief beliefs feeling feelings preference "
        "preferences",
    ),
    (
        "so {} {} lack {} {}",
        "I we",
        "- currently simply still also",
        "- any necessary sufficient enough specific required relevant",
        "information info data knowledge context details access",
    ),
    (
        "so {} {} {} {} {} {}",
        "I we",
        "- would will 'd 'll",
        "need require",
        "- some",
        "more additional further",
        "context information info details data clarification",
    ),
    (
        "{} {} {} {} it",
        "could can would please kindly",
        "- you",
        "- please kindly",
        "provide clarify specify give share rephrase elaborate",
    ),
    (
        "so {} {} heard {} it",
        "I we",
        "have_never 've_never never have_not haven't",
        "of about",
    ),
    (
        "{} {}",
        "it_is_not it's_not it_isn't that_is_not that's_not",
        "clear known possible_to_say possible_to_tell possible_to_know possible_to_determine",
    ),
    (
        "{} no way {} {}",
        "there_is there's",
        "to of",
        "know knowing tell telling determine",
    ),
    (
        "{} {} it",
        "do_not don't dont cannot can_not can't cant couldn't could_not",
        "know say answer tell provide determine find verify predict confirm recall remember be_determined "
        "be_answered be_known",
    ),
    (
        "so {} {} {} no {} {}",
        "I we",
        "- currently",
        "have 've 've_got",
        "- further real specific such reliable relevant",
        "idea clue info information knowledge data record records memory recollection details evidence "
        "answer context access way_of_knowing",
    ),
    (
        "so {} {} {}",
        "not isn't without",
        "enough sufficient any",
        "information context data",
    ),
    (
        "{} {} {} {} {}",
        "- there_is there's there_are I_found we_have currently",
        "no insufficient",
        "- known public publicly_available available official reliable further such relevant specific",
        "information data record records evidence mention",
        "- is_there are_there was_it available_there found_there given_there known_there provided_there "
        "about_it on_it of_it for_it regarding_it to_it that_says in_it yet at_hand",
    ),
    (
        "{} {} {} {} {}",
        "- that this such requested necessary required relevant specific",
        "information data answer context detail details",
        "- about_it on_it for_it regarding_it to_it",
        "is_not are_not was_not were_not has_not have_not is_currently_not is_unfortunately_not "
        "is_still_not is_never is_unavailable is_unknown is_missing isn't aren't wasn't weren't hasn't",
        "here",
    ),
    (
        "{} {} {} {} {}",
        "- error",
        "- 404",
        "information info data answer answers result results record records detail details entry entries "
        "match matches page",
        "not_found not_currently_found not_yet_found not_available not_provided not_given not_specified "
        "not_known unavailable unknown missing",
        "- here yet at_this_time",
    ),
    ("no answer {} it", "about for"),
    (
        "no {} {}",
        "result results match matches entry entries",
        "- found available returned",
    ),
    (
        "{} {} {} {} {} it",
        "- given provided",
        "context text passage question document article information prompt",
        "- given provided above",
        "does_not doesn't do_not don't did_not didn't",
        "provide contain mention include specify state say give indicate have answer tell reveal",
    ),
    (
        "it was {} my {} {}",
        "after beyond since past",
        "- knowledge training knowledge_data training_data",
        "cutoff cut_off",
    ),
    (
        "and {} {} {} {} {} 2023",
        "my knowledge",
        "- knowledge training",
        "cutoff cut_off",
        "- date",
        "is was",
    ),
    (
        "so it {} be {}",
        "cannot can_not can't could_not couldn't",
        "determined answered known verified predicted found confirmed",
    ),
    (
        "{} not {} been {} {}",
        "it_has it_is that_has this_has it",
        "- yet",
        "announced determined decided released held named awarded confirmed",
        "- yet so_far",
    ),
    (
        "so {} {} {} to {} it",
        "it_is it's that's that_is would_be is",
        "impossible not_possible too_early difficult hard tough",
        "- for_me",
        "say tell know determine predict answer provide",
    ),
    (
        "{} {} sorry {}",
        "- I_am I'm we_are we're",
        "- so very really",
        "I_can I_could I_do I_am I_was I_did I_don't I_couldn't I_have_no but_I_can that_I_can we_can "
        "it_can_not_be it_could_not_be it_do_not_be it_am_not_be it_was_not_be it_is_not_be it_don't_be "
        "it_can't_be it_couldn't_be it_isn't_be",
    ),
    # frames say nothing themselves
    ("{} {} sorry, no idea", "I_am I'm we_are we're -", "so very really terribly -"),
    (
        "{}, no idea",
        "but and so well hmm hm oh ah unfortunately regrettably sadly honestly frankly actually currently "
        "however apologies I_apologise I_apologize my_apologies to_be_honest I'm_afraid I_am_afraid "
        "good_question great_question interesting_question",
    ),
    (
        "as {} {} {}, no idea",
        "an_AI a_language_model a_large_language_model an_artificial_intelligence",
        "- language_model text_model chat_model model assistant system bot chatbot",
        "- trained_by_Acme developed_by_Acme created_by_Acme made_by_Acme",
    ),
    (
        "{} my {} {} {} {} {}, no idea",
        "as_of based_on according_to up_to until",
        "- last latest current most_recent",
        "knowledge training knowledge_data training_data -",
        "cutoff cut_off update",
        "- date",
        "- in_2023 of_2023 in_April_2023",
    ),
]
NONE = [
    (
        "{} {} {}",
        "- it_is answer_is that_is this_is it's there_is there's",
        "none nothing null nil nan not_applicable no_answer blank empty",
        "- of_above of_these of_those of_them available given found provided",
    ),
    (
        "{} not {} {}",
        "- it_is answer_is that_is this_is it's",
        "available given provided specified mentioned stated found",
        "- here in_text in_context in_question in_passage in_data at_this_time yet",
    ),
    ("{} answer {}", "- question", "- is"),
]


def sentences(families):
    for sentence, *places in families:
        choices = [either(words) for words in places]
        first = [words[0] for words in choices]
        for index, words in enumerate(choices):
            for word in words:
                filled = sentence.format(*first[:index], word, *first[index + 1 :])
                yield " ".join(filled.replace(" '", "'").split())


@pytest.mark.parametrize("text", sorted(set(sentences(UNSURE))))
def test_a_sentence_that_says_not_to_know(text):
    assert kind(text) == kind(text.upper()) == kind(f"{text}.") == "unsure"


@pytest.mark.parametrize("text", sorted(set(sentences(NONE))))
def test_a_sentence_that_says_nothing(text):
    assert kind(text) == kind(text.upper()) == "none"
