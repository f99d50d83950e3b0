"""Names of countries in sentences of ten languages: stated, denied, and one of two; the names are CLDR's."""

from __future__ import annotations

import pytest
from babel import Locale

from pytest_kbrel.judges.rules import judge

# {} is the accepted name, {o} another country's: a question, right sentences, wrong sentences.
SENTENCES = {
    "de": (
        "Welches Land ist gemeint?",
        "Das Land heißt {}.|{}|Es ist {}, nicht {o}.|Soweit ich weiß, {}.|Nicht {o}, sondern {}.",
        "Es ist nicht {}.|{} ist es nicht.|Es ist {} oder {o}.|Entweder {} oder {o}|Nicht {}, sondern {o}.",
    ),
    "fr": (
        "De quel pays s'agit-il ?",
        "Le pays s'appelle {}.|{}|C'est {}, pas {o}.|À ma connaissance, {}.|Ce n'est pas {o}, mais {}.",
        "Ce n'est pas {}.|{} n'est pas la réponse.|C'est {} ou {o}.|Soit {}, soit {o}.|Pas {}, mais {o}.",
    ),
    "es": (
        "¿De qué país se trata?",
        "El país se llama {}.|{}|Es {}, no {o}.|Que yo sepa, {}.|No es {o}, sino {}.",
        "No es {}.|{} no es la respuesta.|Es {} o {o}.|O {} o {o}.|No es {}, sino {o}.",
    ),
    "it": (
        "Di quale paese si tratta?",
        "Il paese si chiama {}.|{}|È {}, non {o}.|Per quanto ne so, {}.|Non è {o}, ma {}.",
        "Non è {}.|{} non è la risposta.|È {} o {o}.|{o} oppure {}|Non è {}, ma {o}.",
    ),
    "pt": (
        "De que país se trata?",
        "O país chama-se {}.|{}|É {}, não {o}.|Que eu saiba, {}.|Não é {o}, mas {}.",
        "Não é {}.|{} não é a resposta.|É {} ou {o}.|Ou {} ou {o}.|Não é {}, mas {o}.",
    ),
    "ru": (
        "О какой стране речь?",
        "Страна называется {}.|{}|Это {}, а не {o}.|Насколько я знаю, {}.|Не {o}, а {}.",
        "Это не {}.|{} — это не ответ.|Это {} или {o}.|Либо {}, либо {o}.|Не {}, а {o}.",
    ),
    "zh": (
        "这是哪个国家？",
        "这个国家是{}。|{}|是{}，不是{o}。|据我所知，{}。|不是{o}，而是{}。",
        "不是{}。|{}不是答案。|是{}或者{o}。|{o}或{}|不是{}，而是{o}。",
    ),
    "ja": (
        "どの国ですか。",
        "その国は{}です。|{}|{}です。{o}ではありません。|私の知る限り、{}です。|{o}ではなく{}です。",
        "{}ではありません。|{}ではない。|{}または{o}です。|{}、あるいは{o}です。|{}ではなく{o}です。",
    ),
    "ar": (
        "ما هي هذه الدولة؟",
        "هذه الدولة هي {}.|{}|هي {}، وليست {o}.|على حد علمي، {}.|ليست {o} بل {}.",
        "ليست {}.|{} ليست الجواب.|هي {} أو {o}.|{o} أو {}|ليست {} بل {o}.",
    ),
    "hi": (
        "यह कौन सा देश है?",
        "यह देश {} है।|{}|यह {} है, {o} नहीं।|जहाँ तक मुझे पता है, {}।|{o} नहीं, बल्कि {}।",
        "यह {} नहीं है।|{} उत्तर नहीं है।|यह {} या {o} है।|{o} या {}|{} नहीं, बल्कि {o}।",
    ),
}


def names_in(language):
    """Return the names of countries, without those with what is in brackets or shortened."""
    names = Locale(language).territories
    codes = sorted(
        code
        for code in names
        if len(code) == 2 and code.isalpha() and code[0] not in "QXZ"
    )
    result = [names[code] for code in codes if code not in ("EU", "EZ", "UN")]
    return [name for name in result if not any(sign in name for sign in ".(（-")]


def wrongly_judged(language, step):
    question, right, wrong = SENTENCES[language]
    names = names_in(language)
    for index in range(0, len(names), step):
        name, other = names[index], names[(index + 97) % len(names)]
        if name in other or other in name:
            continue
        for sentences, label in ((right, "correct"), (wrong, "wrong")):
            for sentence in sentences.split("|"):
                answer = sentence.format(name, o=other)
                result = judge(answer, [name], question, language=language)
                if result.label != label:
                    yield answer, result


@pytest.mark.parametrize("language", SENTENCES)
def test_a_country_is_found_where_a_sentence_states_it_and_only_there(language):
    wrongly = list(wrongly_judged(language, 3))
    # Two names of ten words and more with an "or" between them are too long to be seen as alternatives.
    assert len(wrongly) <= 5, wrongly
