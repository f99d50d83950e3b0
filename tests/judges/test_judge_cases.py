"""Answers written by hand, with what they are and which rule must say so."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import judge

CAPITAL = "What is the capital of France?"
AUTHOR = "Who wrote the novel?"
RULER = "Who ruled the country then?"
WHEN = "When did the bridge open?"
DAY = "On what date did the bridge open?"
MANY = "How many islands does the group have?"
COUNTRY = "In which country does the river rise?"
NATION = "What is the nationality of the painter?"
LANGUAGE = "What language is spoken on the island?"
PLACE = "Where was the treaty signed?"
MAKER = "Which company built the engine?"
ANIMAL = "Which animal does the shepherd keep?"
TALL = "How tall is the tower?"
FILM = "Which film won the prize?"
SPAN = "When was the theatre in use?"

RIGHT = [
    # equal
    (CAPITAL, ["Paris"], "Paris", "equal"),
    (CAPITAL, ["Paris"], " the PARIS! ", "equal"),
    (CAPITAL, ["Paris", "City of Light"], "city of light.", "equal"),
    (AUTHOR, ["J. R. R. Tolkien"], "J.R.R. Tolkien", "equal"),
    (FILM, ["None but the Brave"], "None but the Brave", "equal"),
    (FILM, ["I Don't Know"], "I don't know", "equal"),
    (MANY, ["7"], "7", "equal"),
    (CAPITAL, ["Paris"], "Answer: Paris", "equal"),
    (CAPITAL, ["Paris"], "<answer>Paris</answer>", "equal"),
    (CAPITAL, ["Paris"], "Paris\n\nQ: What is the capital of Spain?\nA: Madrid", "equal"),
    (CAPITAL, ["東京"], "東京", "equal"),
    # spelling
    (AUTHOR, ["Händel"], "Haendel", "spelling"),
    (CAPITAL, ["Washington, D.C."], "Washington DC", "spelling"),
    (CAPITAL, ["Łódź"], "Lodz", "spelling"),
    (CAPITAL, ["São Tomé"], "Sao Tome", "spelling"),
    (CAPITAL, ["Tromsø"], "Tromso", "spelling"),
    (AUTHOR, ["Simon & Garfunkel"], "Simon and Garfunkel", "spelling"),
    (AUTHOR, ["Olivia O'Brien"], "Olivia OBrien", "spelling"),
    (FILM, ["The Handmaid's Tale"], "Handmaids Tale", "plural"),
    (FILM, ["post-metal"], "postmetal", "spelling"),
    (FILM, ["Superbowl"], "Super Bowl", "spelling"),
    (COUNTRY, ["United States"], "the USA", "spelling"),
    (COUNTRY, ["USA"], "U.S.A.", "spelling"),
    (COUNTRY, ["United States of America"], "the US", "spelling"),
    (COUNTRY, ["UK"], "The United Kingdom", "spelling"),
    (CAPITAL, ["St. Louis"], "Saint Louis", "spelling"),
    (CAPITAL, ["Mt. Everest"], "Mount Everest", "spelling"),
    (AUTHOR, ["Antonella Rocca"], "Antonela Rocca", "spelling"),
    (FILM, ["The National Space Centre"], "National Space Center", "spelling"),
    (FILM, ["Seven Samurai"], "7 Samurai", "spelling"),
    (FILM, ["Rocky III"], "Rocky 3", "spelling"),
    # numeral
    (RULER, ["Elizabeth II"], "Elizabeth the Second", "numeral"),
    (RULER, ["Elizabeth II"], "Elizabeth the 2nd", "numeral"),
    # qualifier
    (FILM, ["Orion (film)"], "Orion", "qualifier"),
    (CAPITAL, ["Brighton, East Sussex"], "Brighton", "qualifier"),
    (AUTHOR, ["Hess, Rudolf"], "Rudolf Hess", "qualifier"),
    (AUTHOR, ["William Shakespeare"], "Shakespeare, William", "qualifier"),
    # title
    (AUTHOR, ["Rajendra Prasad"], "Dr. Rajendra Prasad", "title"),
    (AUTHOR, ["Sir Arthur Conan Doyle"], "Arthur Conan Doyle", "title"),
    (RULER, ["Solomon"], "King Solomon", "title"),
    (RULER, ["Queen Victoria"], "Victoria", "title"),
    (AUTHOR, ["Martin Luther King Jr."], "Martin Luther King", "title"),
    (FILM, ["Mr Pilkington"], "Pilkington", "title"),
    # company
    (MAKER, ["Rolls-Royce Ltd."], "Rolls-Royce", "company"),
    (MAKER, ["Siemens"], "Siemens AG", "company"),
    (MAKER, ["Ford Motor Company"], "Ford Motor Co.", "company"),
    ("Which club did he play for?", ["Real Madrid C.F."], "Real Madrid", "company"),
    ("Which club did he play for?", ["Arsenal F.C."], "Arsenal FC", "spelling"),
    # plural
    (ANIMAL, ["Elephant"], "elephants", "plural"),
    (ANIMAL, ["goats"], "a goat", "plural"),
    (ANIMAL, ["ponies"], "pony", "plural"),
    (
        "What is the smallest unit of a living thing, by the cell theory?",
        ["cells"],
        "It is the cell.",
        "plural",
    ),
    # initials
    (AUTHOR, ["George Frideric Handel"], "G. F. Handel", "initials"),
    (AUTHOR, ["J. Keats"], "John Keats", "initials"),
    (AUTHOR, ["John Ronald Reuel Tolkien"], "JRR Tolkien", "initials"),
    (AUTHOR, ["John Ronald Reuel Tolkien"], "It was written by J. R. R. Tolkien.", "initials"),
    # nickname
    (AUTHOR, ["James Harrison"], "Jim Harrison", "nickname"),
    (AUTHOR, ["Bill Bryson"], "William Bryson", "nickname"),
    # name
    (AUTHOR, ["Richard Charles Rodgers"], "Richard Rodgers", "name"),
    (AUTHOR, ["Lyndon Johnson"], "Lyndon B. Johnson", "name"),
    (AUTHOR, ["Apsley George Benet Cherry-Garrard"], "The explorer Apsley Cherry-Garrard wrote it.", "name"),
    ("What is the full name of the minister?", ["Narendra Modi"], "Narendra Damodardas Modi", "name"),
    # surname
    (AUTHOR, ["William Shakespeare"], "Shakespeare", "surname"),
    (AUTHOR, ["Ludwig van Beethoven"], "van Beethoven", "surname"),
    (AUTHOR, ["Ludwig van Beethoven"], "It was Beethoven.", "surname"),
    (AUTHOR, ["William Shakespeare"], "The playwright Shakespeare", "surname"),
    # nation
    (NATION, ["Canada"], "Canadian", "nation"),
    (NATION, ["Netherlands"], "Dutch", "nation"),
    (COUNTRY, ["Iranian"], "Iran", "nation"),
    (NATION, ["United States of America"], "She is American.", "nation"),
    (
        "Which school did he attend?",
        ["Military Academy of Venezuela"],
        "Venezuelan Military Academy",
        "nation",
    ),
    # question's word
    (LANGUAGE, ["Spanish language"], "Spanish", "question's word"),
    (LANGUAGE, ["Portuguese Language"], "Brazilian Portuguese is spoken there.", "question's word"),
    ("Which county is it in?", ["Chippewa County"], "Chippewa", "question's word"),
    (
        "What was the fortress in the heart of Moscow called?",
        ["Moscow Kremlin"],
        "the Kremlin",
        "question's word",
    ),
    ("What is the highest mountain?", ["Mount Everest"], "Everest", "question's word"),
    ("What is the currency of Japan?", ["Japanese yen"], "the yen", "question's word"),
    (
        "What language is spoken in China?",
        ["Chinese language"],
        "Chinese is spoken in China.",
        "question's word",
    ),
    # part
    ("Which award did she win?", ["Nobel Peace Prize medal"], "Nobel Peace Prize", "part"),
    ("Who cooks there?", ["White House Executive Chef"], "The White House Chef", "name"),
    # date
    (WHEN, ["8 September 2010"], "September 8, 2010", "date"),
    (WHEN, ["8 September 2010"], "8th Sept. 2010", "date"),
    (WHEN, ["8 September 2010"], "2010-09-08", "date"),
    (WHEN, ["2010-09-08"], "on the 8th of September, 2010", "date"),
    (WHEN, ["25 December 1999"], "25/12/1999", "date"),
    (WHEN, ["25 December 1999"], "12/25/1999", "date"),
    (WHEN, ["8 September 2010"], "It opened in September 2010.", "date"),
    (WHEN, ["8 September 2010"], "In 2010.", "date"),
    (WHEN, ["2010"], "The bridge opened on 8 September 2010.", "date"),
    (WHEN, ["2004 opening season"], "The bridge opened in 2004.", "date"),
    (WHEN, ["around 8000 BC"], "8000 BCE", "date"),
    (WHEN, ["1990s"], "It opened in the 1990s.", "date"),
    (WHEN, ["14 July"], "July 14th", "date"),
    (WHEN, ["July 21, 1861"], "The bridge of 1860 opened on July 21, 1861.", "date"),
    (WHEN, ["18th century"], "in the eighteenth century", "date"),
    (WHEN, ["4 July 1776"], "1776-07-04T00:00:00Z", "date"),
    (WHEN, ["1776"], "circa 1776", "date"),
    (WHEN, ["44 BC"], "44 B.C.", "date"),
    # period
    (SPAN, ["1985–1993"], "from 1985 to 1993", "period"),
    (SPAN, ["1997–98"], "It was in use in the 1997-1998 season.", "period"),
    (SPAN, ["1964 to 1974"], "between 1964 and 1974", "period"),
    # number
    (MANY, ["7"], "seven", "number"),
    (MANY, ["seven"], "There are 7 islands.", "number"),
    (MANY, ["twenty-four"], "It has 24.", "number"),
    (MANY, ["126"], "one hundred and twenty-six", "number"),
    (MANY, ["4,613"], "4613", "number"),
    (MANY, ["4613"], "4 613 islands", "number"),
    (MANY, ["4,613"], "The group has 4,613 islands.", "number"),
    (TALL, ["5 km"], "5 kilometres", "number"),
    (TALL, ["5 litres"], "about 5 liters", "number"),
    (TALL, ["5 metres"], "5", "number"),
    (TALL, ["6ft 1in"], "The tower is 6 feet 1 inch tall.", "contained"),
    ("How much did it cost?", ["$2.5 million"], "2,500,000 dollars", "number"),
    ("How much did it cost?", ["$2.5 million"], "It cost US$2.5m.", "number"),
    ("How many live there?", ["7 million"], "seven million", "number"),
    ("What share was it?", ["40%"], "40 percent", "number"),
    (MANY, ["12"], "In 1998 it had 12 islands.", "number"),
    (MANY, ["7"], "7 (seven)", "number"),
    ("How many games did they win in 12 rounds?", ["7"], "In 12 rounds they won 7.", "number"),
    (TALL, ["24 hours"], "the full 24 hours", "number"),
    ("Which symphony is it?", ["9"], "Symphony No. 9", "number"),
    # rounded
    ("How much did it cost?", ["$2.187 billion"], "approximately $2.19 billion", "rounded"),
    ("How many live there?", ["4,613,000"], "about 4,600,000", "rounded"),
    # yes or no
    ("Are both rivers in Asia?", ["yes"], "Yes, both are in Asia.", "yes or no"),
    ("Are both rivers in Asia?", ["no"], "No.", "equal"),
    ("Are both rivers in Asia?", ["no"], "No, only one is.", "yes or no"),
    # contained
    (CAPITAL, ["Paris"], "The capital of France is Paris.", "contained"),
    (CAPITAL, ["Paris"], "Paris, France", "contained"),
    (CAPITAL, ["Paris"], "Paris (France)", "contained"),
    (COUNTRY, ["Spain"], "Seville, Spain", "contained"),
    (CAPITAL, ["Paris"], "I think it's Paris, which lies on the Seine.", "contained"),
    (CAPITAL, ["Paris"], "Not Lyon but Paris.", "contained"),
    (FILM, ["black metal"], "It is a black metal album", "contained"),
    ("What did he do?", ["Demographer", "Economist"], "He was a British economist.", "contained"),
    ("What is his occupation?", ["biologist"], "He was a French biologist and naturalist.", "contained"),
    (FILM, ["Saving Mr. Banks"], 'The prize went to "Saving Mr Banks" in 2013.', "contained"),
    ("What is the capital of Lamphun?", ["Lamphun"], "The capital of Lamphun is also Lamphun.", "contained"),
    ("Which magazine is older, Vogue or Elle?", ["Vogue"], "Vogue is older.", "contained"),
    (CAPITAL, ["Istanbul", "Constantinople"], "Istanbul or Constantinople", "contained"),
    (AUTHOR, ["Albert Hackett", "Frances Goodrich"], "Albert Hackett and Frances Goodrich", "contained"),
    (PLACE, ["in Santa Monica"], "It was signed in Santa Monica, California.", "contained"),
    ("Which state is it in?", ["Massachusetts"], "Salem, Massachusetts", "contained"),
    (CAPITAL, ["Paris"], "Possibly Paris", "contained"),
    (FILM, ["Alien"], "Alien, I think", "contained"),
    (CAPITAL, ["Paris"], "There is no doubt that it is Paris.", "contained"),
    (CAPITAL, ["Paris"], "It gave us Paris.", "contained"),
    (CAPITAL, ["Paris"], "I'm sorry, but it is Paris.", "contained"),
    (CAPITAL, ["Paris"], "THE CAPITAL OF FRANCE IS PARIS", "contained"),
    (COUNTRY, ["Ireland"], "Republic of Ireland", "contained"),
    # list
    ("In which two cities is it set?", ["Paris and London"], "London and Paris", "list"),
    (AUTHOR, ["Pasek and Paul"], "Benj Pasek and Justin Paul wrote it.", "list"),
]

WRONG = [
    # no rule
    (CAPITAL, ["Paris"], "Lyon", "no rule"),
    (CAPITAL, ["Paris"], "Parisian", "no rule"),
    (CAPITAL, [], "Paris", "no rule"),
    (AUTHOR, ["John Adams"], "John Quincy Adams", "no rule"),
    (AUTHOR, ["George H. W. Bush"], "George W. Bush", "no rule"),
    (AUTHOR, ["John Keats"], "P. Keats", "no rule"),
    (AUTHOR, ["William Smith"], "Robert Smith", "no rule"),
    (AUTHOR, ["Errol Flynn"], "Sean Flynn", "no rule"),
    ("Who is the father of Sean Flynn?", ["Errol Flynn"], "Flynn", "no rule"),
    (AUTHOR, ["William Shakespeare"], "William", "no rule"),
    (CAPITAL, ["New York"], "York", "no rule"),
    (RULER, ["Elizabeth II"], "Elizabeth I", "no rule"),
    (RULER, ["Elizabeth II"], "Elizabeth", "no rule"),
    (FILM, ["Rocky III"], "Rocky II", "no rule"),
    (PLACE, ["Paris, Texas"], "Paris, France", "no rule"),
    ("Which party was it?", ["Democratic-Republican Party"], "Democratic Party", "no rule"),
    (COUNTRY, ["Papua New Guinea"], "New Guinea", "no rule"),
    (COUNTRY, ["South Korea"], "North Korea", "no rule"),
    (COUNTRY, ["South Korea"], "Korea", "no rule"),
    (COUNTRY, ["Democratic Republic of the Congo"], "Republic of the Congo", "no rule"),
    (LANGUAGE, ["Spanish"], "Spain", "no rule"),
    (NATION, ["Canada"], "American", "no rule"),
    ("Where did she live?", ["Wells"], "She lived in Well.", "no rule"),
    (MAKER, ["General Motors Company"], "General Electric Company", "no rule"),
    (
        "Who was the queen's mother?",
        ["Queen Elizabeth The Queen Mother"],
        "It was Queen Mary, her mother.",
        "no rule",
    ),
    (FILM, ["Lock, Stock and Two Smoking Barrels"], "Lock", "no rule"),
    (COUNTRY, ["India", "IN"], "It rises in Nepal.", "no rule"),
    (COUNTRY, ["India", "IN"], "In Nepal", "no rule"),
    (FILM, ["The Good, the Bad and the Ugly"], "The Good", "no rule"),
    (CAPITAL, ["Paris"], "Lyon\nQ: What is the capital of France?\nA: Paris", "no rule"),
    ("Which vitamin is it?", ["C"], "It is the island C.", "no rule"),
    (AUTHOR, ["Jet Li"], "Li", "no rule"),
    ("Which park is it?", ["Great Barrier Reef Marine Park"], "Barrier Reef Marine Park", "no rule"),
    (FILM, ["Alien"], "Aliens", "no rule"),
    (FILM, ["Star Wars"], "Star Wars: The Empire Strikes Back", "several"),
    # dates
    (WHEN, ["8 September 2010"], "9 September 2010", "no rule"),
    (WHEN, ["8 September 2010"], "8 October 2010", "no rule"),
    (WHEN, ["8 September 2010"], "2011", "no rule"),
    (DAY, ["8 September 2010"], "2010", "no rule"),
    (DAY, ["8 September 2010"], "September 2010", "no rule"),
    (WHEN, ["26 November 1956", "1956"], "On 1 March 1956", "no rule"),
    (WHEN, ["1990s"], "1990", "no rule"),
    (WHEN, ["500 BC"], "500 AD", "no rule"),
    (WHEN, ["1983"], "1984", "no rule"),
    (WHEN, ["2004"], "from 2004 to 2012", "no rule"),
    (SPAN, ["1985–1993"], "1985 to 1992", "no rule"),
    (SPAN, ["1985–1993"], "1985", "no rule"),
    ("What opened in 1998?", ["1998"], "It opened in 1998.", "no rule"),
    (WHEN, ["1776"], "not 1776", "no rule"),
    (WHEN, ["1776"], "before 1776", "no rule"),
    (WHEN, ["1776"], "1776 or 1777", "no rule"),
    (WHEN, ["1776"], "1775 or 1776", "no rule"),
    (WHEN, ["18th century"], "19th century", "no rule"),
    (WHEN, ["44 BC"], "in 44", "no rule"),
    # numbers
    (MANY, ["7"], "7-8", "no rule"),
    (MANY, ["7"], "between 7 and 9", "no rule"),
    (MANY, ["7"], "8", "no rule"),
    (MANY, ["7"], "17", "no rule"),
    (MANY, ["7"], "7.5", "no rule"),
    (MANY, ["2"], "10 islands in season 2", "no rule"),
    ("How many episodes has season 2?", ["2"], "There are 10 episodes in season 2.", "no rule"),
    (TALL, ["5 km"], "5 miles", "no rule"),
    (TALL, ["5 km"], "5 m", "no rule"),
    (MANY, ["4,613"], "about 4,800", "no rule"),
    (MANY, ["4,613"], "4,600", "no rule"),
    ("How much did it cost?", ["$2.187 billion"], "$2.2 million", "no rule"),
    ("How much did it cost?", ["$2.187 billion"], "about $2 billion", "no rule"),
    (MANY, ["7"], "7 or 8", "no rule"),
    (MANY, ["7"], "not 7", "no rule"),
    ("How many live there?", ["7 million"], "7", "no rule"),
    # yes or no
    ("Are both rivers in Asia?", ["yes"], "No, they are not.", "no rule"),
    ("Are both rivers in Asia?", ["no"], "There is no doubt: yes", "no rule"),
    (COUNTRY, ["USA"], "It gave us rivers.", "no rule"),
    # negated
    (CAPITAL, ["Paris"], "not Paris", "negated"),
    (CAPITAL, ["Paris"], "The capital of France is not Paris.", "negated"),
    (CAPITAL, ["Paris"], "It isn't Paris", "negated"),
    (CAPITAL, ["Paris"], "Lyon, not Paris", "negated"),
    (CAPITAL, ["Paris"], "Lyon rather than Paris", "negated"),
    (CAPITAL, ["Paris"], "Paris is not the capital of France.", "negated"),
    (CAPITAL, ["Paris"], "Every city except Paris", "negated"),
    (CAPITAL, ["Paris"], "Neither Lyon nor Paris", "negated"),
    # several
    (CAPITAL, ["Paris"], "Paris or Lyon or Rome", "several"),
    (CAPITAL, ["Paris"], "Paris or Lyon", "several"),
    (CAPITAL, ["Paris"], "Either Lyon or Paris", "several"),
    (CAPITAL, ["Paris"], "It is Paris, Lyon or Rome.", "several"),
    (CAPITAL, ["Paris"], "The capital of France is either Paris or Lyon.", "several"),
    (CAPITAL, ["Paris"], "Rome, Lyon, Paris", "several"),
    (CAPITAL, ["Paris"], "Paris, Lyon, Rome, Oslo", "several"),
    (CAPITAL, ["Paris"], "Paris and Lyon", "several"),
    (CAPITAL, ["Paris"], "Lyon/Paris", "several"),
    (CAPITAL, ["Paris"], "Paris/Lyon/Rome/Oslo", "several"),
    (CAPITAL, ["Paris"], "Lyon\nRome\nParis", "several"),
    (CAPITAL, ["Paris"], "1. Lyon\n2. Paris\n3. Rome", "several"),
    (COUNTRY, ["France"], "Germany, France", "several"),
    (AUTHOR, ["John Keats"], "Percy Shelley and John Keats", "several"),
    (CAPITAL, ["Paris"], "Paris? Lyon?", "several"),
    (CAPITAL, ["Paris"], "Paris. Lyon. Rome.", "several"),
    # other name
    (CAPITAL, ["Paris"], "Paris Hilton", "other name"),
    (CAPITAL, ["Paris"], "paris hilton", "other name"),
    ("Which state is it in?", ["Virginia"], "West Virginia", "other name"),
    ("Which state is it in?", ["Virginia"], "It is in West Virginia.", "other name"),
    (COUNTRY, ["Guinea"], "It rises in Equatorial Guinea.", "other name"),
    (CAPITAL, ["York"], "New York", "other name"),
    (FILM, ["Apollo"], "Apollo 13", "other name"),
    ("Which newspaper was it?", ["New York"], "The New York Times", "other name"),
    ("Which tree is it?", ["Ash"], "the American Ash", "other name"),
    ("What was her office?", ["president"], "She was vice president.", "other name"),
    (COUNTRY, ["Congo"], "Democratic Republic of the Congo", "other name"),
    ("Which church is it?", ["Church"], "Church of Scotland", "other name"),
    ("Which team won?", ["Miami"], "the University of Miami", "other name"),
    ("What currency is used in Niger?", ["CFA franc"], "West African CFA Franc", "other name"),
    # beside
    (AUTHOR, ["Olivia Stone"], "It was written by Max Reed, featuring Olivia Stone.", "beside"),
    # echo
    (
        "Who is the father of Juan Peres Lima?",
        ["Juan Peres"],
        "Juan Peres Lima is a son of Pedro Soto.",
        "echo",
    ),
    ("What language is spoken in Myanmar?", ["Burmese", "Myanmar"], "The answer for Myanmar is Lao.", "echo"),
    ("Where is the Elbe power plant?", ["Elbe"], "The Elbe power plant is in Bohemia.", "echo"),
    ("Which magazine is older, Vogue or Elle?", ["Vogue"], "Vogue or Elle", "echo"),
]

UNINFORMATIVE = [
    (CAPITAL, ["Paris"], "", "none"),
    (CAPITAL, ["Paris"], "...", "none"),
    (CAPITAL, ["Paris"], "N/A", "none"),
    (CAPITAL, ["Paris"], "None", "none"),
    (CAPITAL, ["Paris"], "None of the above", "none"),
    (CAPITAL, ["Paris"], "Not available", "none"),
    (CAPITAL, ["Paris"], CAPITAL, "none"),
    (CAPITAL, ["Paris"], "Q: What is the capital of France? A:", "none"),
    (CAPITAL, ["Paris"], "What is the capital of France? What is the capital of France?", "none"),
    (CAPITAL, ["Paris"], "Answer:", "none"),
    (CAPITAL, ["Paris"], "la la la la la la", "repetition"),
    (CAPITAL, ["Paris"], "the city of the city of the city of the city of", "repetition"),
    (CAPITAL, ["Paris"], "Paris Paris Paris Paris Paris", "repetition"),
    (CAPITAL, ["Paris"], "unsure", "unsure"),
    (CAPITAL, ["Paris"], "I'm not sure.", "unsure"),
    (CAPITAL, ["Paris"], "I am not sure, but it may be Paris.", "unsure"),
    (CAPITAL, ["Paris"], "I don't know.", "unsure"),
    (CAPITAL, ["Paris"], "I do not have enough information to answer.", "unsure"),
    (CAPITAL, ["Paris"], "Sorry, I can't answer that.", "unsure"),
    (CAPITAL, ["Paris"], "As an AI language model, I cannot provide that.", "unsure"),
    (CAPITAL, ["Paris"], "It is unknown.", "unsure"),
    (CAPITAL, ["Paris"], "No information is available.", "unsure"),
    (CAPITAL, ["Paris"], "It has not been announced yet.", "unsure"),
    (CAPITAL, ["Paris"], "To be determined", "unsure"),
    (CAPITAL, ["Paris"], "It is impossible to predict", "unsure"),
    (CAPITAL, ["Paris"], "Cannot be determined", "unsure"),
]

# They sound like an abstention and are answers.
ANSWERS = [
    "Unknown Soldier",
    "None but the Brave",
    "None Like Us",
    "No Country for Old Men",
    "Duran Duran",
    "Nothing Else Matters",
    "The Unknown Masterpiece",
    "Sorry, Wrong Number",
    "Uncertain Glory",
    "Not Fade Away",
    "The Tomb of the Unknown Warrior",
    "No Information Age",
    "Nobody Knows",
    "The Question",
    "I Wonder Who",
    "Impossible Objects",
    "N",
    "The man who did not know enough",
    "Blank Space",
    "To Be or Not to Be",
    "Walla Walla",
]


def _ids(cases):
    return [f"{rule}-{answer[:30]}" for _, _, answer, rule in cases]


@pytest.mark.parametrize(("question", "golds", "answer", "rule"), RIGHT, ids=_ids(RIGHT))
def test_an_answer_written_in_another_way_is_right(question, golds, answer, rule):
    found = judge(answer, golds, question)
    assert (found.label, found.rule) == ("correct", rule)


@pytest.mark.parametrize(("question", "golds", "answer", "rule"), WRONG, ids=_ids(WRONG))
def test_what_names_another_thing_is_wrong(question, golds, answer, rule):
    found = judge(answer, golds, question)
    assert (found.label, found.rule) == ("wrong", rule)


@pytest.mark.parametrize(("question", "golds", "answer", "kind"), UNINFORMATIVE, ids=_ids(UNINFORMATIVE))
def test_what_says_nothing_is_of_one_of_three_kinds(question, golds, answer, kind):
    found = judge(answer, golds, question)
    assert (found.label, found.rule) == ("uninformative", kind)


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_title_that_sounds_like_an_abstention_is_an_answer(answer):
    assert judge(answer, ["Paris"], CAPITAL).label == "wrong"
    assert judge(answer, [answer], CAPITAL).rule == "equal"
