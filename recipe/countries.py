"""Facts about countries and languages, from GeoNames and CLDR."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from babel.core import get_global
from babel.languages import get_official_languages, get_territory_language_info
from babel.numbers import get_territory_currencies

from pytest_kbrel.records import Fact
from recipe.sources import CONTINENTS, Sources


def countries(sources: Sources) -> list[Fact]:
    """P36, P30, P37 and P38: country to capital, continent, official language and currency."""
    facts: dict[str, list[Fact]] = {"P36": [], "P30": [], "P37": [], "P38": []}
    for code, country in sources.land.items():
        subject, popularity = sources.names(code)[0], math.sqrt(country["population"])
        if code not in sources.hand["no_capital"] and country["capital"].strip():
            facts["P36"].append(
                sources.fact("P36", code, subject, sources.capital(code), popularity, "GeoNames")
            )
        if code not in sources.hand["no_continent"]:
            continent = [CONTINENTS[country["continentcode"]]]
            facts["P30"].append(sources.fact("P30", code, subject, continent, popularity, "GeoNames"))
        codes = get_official_languages(code, de_facto=True)
        found = [str(sources.english.languages[c]) for c in codes if c in sources.english.languages]
        languages = sources.hand["languages"].get(code, found)
        if languages and code not in sources.hand["no_language"]:
            facts["P37"].append(sources.fact("P37", code, subject, languages, popularity, "CLDR"))
        money = sources.hand["currencies"].get(code) or get_territory_currencies(code)
        if money and code not in sources.hand["no_currency"]:
            facts["P38"].append(
                sources.fact("P38", code, subject, _currencies(sources, money), popularity, "CLDR")
            )
    return [fact for relation in facts.values() for fact in relation]


def _currencies(sources: Sources, codes: Sequence[str]) -> list[str]:
    last_words = Counter(str(name).split()[-1] for name in sources.english.currencies.values())
    names = []
    for code in codes:
        name = str(sources.english.currencies[code]).replace(" & ", " and ")
        names += [name, *sources.hand["currency_aliases"].get(code, ())]
        # "Yen" is a full answer where few currencies share the word; "dollar" is none.
        if last_words[name.split()[-1]] <= 2:
            names.append(name.split()[-1])
    return names


def scripts(sources: Sources) -> list[Fact]:
    """P282, language to writing system."""
    speakers: Counter[str] = Counter()
    for code, country in sorted(sources.every_country.items()):
        for language, info in (get_territory_language_info(code) or {}).items():
            speakers[language] += round(country["population"] * info["population_percent"] / 100)
    likely = get_global("likely_subtags")
    also = defaultdict(set)
    for language, count in speakers.items():
        base, _, script = language.partition("_")
        if script in sources.english.scripts and count >= speakers[base] / 20:
            also[base].add(str(sources.english.scripts[script]))
    facts = []
    for language, count in sorted(speakers.items()):
        if "_" in language or language not in sources.english.languages:
            continue
        script = str(sources.english.scripts.get(str(likely.get(language, "__")).split("_")[1]))
        # Most languages are written in Latin letters; without the small others there are few scripts.
        if count < (1_000_000 if script == "Latin" else 100_000):
            continue
        answers = sources.hand["scripts"].get(language, [script, *sorted(also[language] - {script})])
        if not answers or answers[0] == "None":
            continue
        answers = [*answers, *sources.hand["script_aliases"].get(answers[0], ())]
        subject = str(sources.english.languages[language])
        facts.append(sources.fact("P282", language, subject, answers, math.sqrt(count), "CLDR"))
    return facts
