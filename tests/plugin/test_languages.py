"""Suites that compare what a model knows in several languages."""

import json

import pytest

from pytest_kbrel.cli import main
from tests.plugin.conftest import one_line

SUITE = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  instructions: translated
overall:
  gates:
    consistency: {min: 0.8, max_drop: 0.05}
    agreement: {min: 0.7}
"""
RELATIONS = """\
P36.en:
  label: capital
  domain: en
  frames: ["What is the capital of [X]?"]
P36.de:
  label: capital
  domain: de
  checked: false
  frames: ["Wie heißt die Hauptstadt von [X]?"]
"""
# Country and capital in English and in German.
NAMES = (
    "France Paris Frankreich Paris",
    "Spain Madrid Spanien Madrid",
    "Austria Vienna Österreich Wien",
    "Greece Athens Griechenland Athen",
    "Denmark Copenhagen Dänemark Kopenhagen",
    "Egypt Cairo Ägypten Kairo",
    "Poland Warsaw Polen Warschau",
    "Russia Moscow Russland Moskau",
    "Portugal Lisbon Portugal Lissabon",
    "Italy Rome Italien Rom",
    "Belgium Brussels Belgien Brüssel",
    "Romania Bucharest Rumänien Bukarest",
)


def facts(**more):
    lines = []
    for number, names in enumerate(NAMES, 1):
        country, capital, *other = names.split()
        for language, subject, obj in (("en", country, capital), ("de", *other)):
            lines.append(
                {
                    "id": f"{language}{number}",
                    "relation": "P36.en" if language == "en" else "P36.de",
                    "subject": subject,
                    "object": obj,
                    "popularity": number,
                    "language": language,
                    "parallel": f"capital:{number}",
                    **more,
                }
            )
    return "".join(json.dumps(line) + "\n" for line in lines)


def script(german):
    """Return a model that names the first nine capitals in English, and so many in German.

    Of the others it says that they are Vienna, or in German that it does not know the last three of them.
    """
    rules = []
    for number, names in enumerate(NAMES):
        country, capital, land, stadt = names.split()
        wrong = "unsicher" if number in range(6, 9) else "Es ist Wien."
        answers = (
            (rf"Question: .*{country}\?", capital if number < 9 else "It is Vienna."),
            (rf"Frage: .*{land}\?", stadt if number < german else wrong),
        )
        rules += [{"pattern": of, "text": text} for of, text in answers]
    rules.append({"default": {"text": "unsure"}})
    return "".join(json.dumps(rule) + "\n" for rule in rules)


@pytest.fixture
def suite(pytester, mini_suite):
    def write(of=None, relations=RELATIONS):
        path = mini_suite(SUITE, of or facts())
        (path.parent / "relations.yaml").write_text(relations, "utf-8")
        for name, german in (("six", 6), ("three", 3)):
            (pytester.path / f"{name}.jsonl").write_text(script(german), "utf-8")

    return write


def test_what_is_known_in_one_language_and_in_another(
    pytester, suite, cases, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "300")
    suite()
    six = "--kb-model=scripted/six.jsonl"
    result = pytester.runpytest("suites", six, "--kb-baseline-update=prod")

    assert result.ret == 0
    case = cases()["pooled[overall]"]
    # Right are nine in English, six of them in German as well; three others are Vienna in both.
    assert case["metrics"]["consistency"]["value"] == pytest.approx((6 / 9 + 1) / 2)
    assert case["metrics"]["agreement"]["value"] == pytest.approx(9 / 12)
    assert case["languages"][0] == {
        **{"first": "de", "second": "en", "facts": 12},
        **{"right": 6, "both": 6, "said": 12, "same": 9},
    }
    folder = pytester.path / "kbrel-report"
    for name in ("summary.md", "report.html"):
        text = (folder / name).read_text("utf-8")
        assert "right by language: de 0.500, en 0.750" in text
        assert "the questions in de were not checked by a native speaker" in text
    # Of what is right in German, all is in English; the page has a row a language.
    assert '<th scope="row">de</th>' in text

    three = "--kb-model=scripted/three.jsonl"
    result = pytester.runpytest("suites", three, "--kb-baseline=prod")

    assert result.ret == 1
    case = cases()["pooled[overall]"]
    drop = (3 / 9 + 1) / 2 - (6 / 9 + 1) / 2
    assert case["metrics"]["consistency"]["delta"] == pytest.approx(drop)
    verdicts = {(of["metric"], of["rule"]): of["verdict"] for of in case["gates"]}
    assert verdicts["consistency", "min"] == "fail"
    assert verdicts["consistency", "max_drop"] == "inconclusive"


@pytest.mark.parametrize(
    ("metric", "english", "german"),
    [("consistency", "It is Vienna.", None), ("agreement", "unsure", "Es ist Wien.")],
)
def test_what_is_empty_in_one_language_counts_against_the_model(
    pytester, suite, cases, metric, english, german
):
    """Nothing is said in German of three: it may be right, or wrong, and is not so in English."""
    suite()
    path = pytester.path / "suites" / "mini.kb.yaml"
    gates = (
        f"overall:\n  gates: {{{metric}: {{min: 0.9}}}}\nintegrity: {{empty: 1.0}}\n"
    )
    path.write_text(SUITE.partition("overall:")[0] + gates, "utf-8")
    told = []
    for text in (german, ""):
        countries = "(Spain|Greece|Egypt|Spanien|Griechenland|Ägypten)"
        changed = [{"pattern": rf"Question: .*{countries}\?", "text": english}]
        if text is not None:
            changed.append({"pattern": rf"Frage: .*{countries}\?", "text": text})
        lines = "".join(json.dumps(rule) + "\n" for rule in changed)
        (pytester.path / "one.jsonl").write_text(lines + script(9), "utf-8")
        pytester.runpytest("suites", "--kb-model=scripted/one.jsonl")
        told.append(cases()["pooled[overall]"])

    assert [case["verdict"] for case in told] == ["fail", "fail"]
    assert told[1]["metrics"][metric]["value"] == 1.0
    reason = told[1]["gates"][0]["reason"]
    assert reason.endswith("with the empty answers counted against it")


def test_a_pack_without_texts_tells_of_no_agreement(pytester, suite, cases):
    suite(facts(dataset="theirs"))
    path = pytester.path / "suites" / "mini.kb.yaml"
    text = path.read_text("utf-8").replace("{min: 0.7}", "{max_drop: 0.1}")
    path.write_text(text, "utf-8")
    pytester.runpytest("suites", "--kb-model=scripted/six.jsonl")
    assert main(("pack", "kbrel-report", "--output=p.kbrel")) == 0
    # What the baseline says to the last three agrees, and is withheld.
    other = script(6).replace("Es ist Wien.", "Es ist Madrid.")
    (pytester.path / "other.jsonl").write_text(other, "utf-8")
    flags = "--kb-model=scripted/other.jsonl", "--kb-baseline=./p.kbrel"
    pytester.runpytest("suites", *flags)
    of = cases()["pooled[overall]"]["gates"]
    verdicts = {(one["metric"], one["rule"]): one["verdict"] for one in of}
    assert verdicts["consistency", "max_drop"] == "pass"
    assert verdicts["agreement", "max_drop"] == "not comparable"


def test_the_same_facts_are_drawn_in_each_language(pytester, suite, cases):
    suite()
    pytester.runpytest("suites", "--kb-model=scripted/six.jsonl", "--kb-limit=2")
    pairs = cases()["pooled[overall]"]["languages"]
    asked = [case["n"] for name, case in cases().items() if "[en-" in name]
    assert pairs[0]["facts"] == sum(asked) < 12


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"of": "".join(facts().splitlines(keepends=True)[::2])},
            "consistency needs facts with 'parallel' in two languages, found: en; allowed: such facts, or no gate",
        ),
        (
            {"of": facts(parallel="one")},
            "facts.jsonl:3: fact 'en2' has the 'parallel' 'one' of 'en1', found both in 'en'; allowed: one fact "
            "of that name in a language",
        ),
        (
            {"relations": RELATIONS.replace("domain: en", "domain: de")},
            "slice 'de-head': 'instructions: translated' needs facts in one language, found: de, en; allowed: "
            "slices by language, or no translation",
        ),
        (
            {"relations": RELATIONS.replace("false", "nobody")},
            "checked must be true or false, found 'nobody'",
        ),
    ],
    ids=["one language", "one name", "mixed slice", "checked"],
)
def test_what_cannot_be_compared_is_an_error(pytester, suite, changed, message):
    suite(**changed)
    result = pytester.runpytest("suites", "--kb-model=scripted/six.jsonl")
    assert message in one_line(result)
