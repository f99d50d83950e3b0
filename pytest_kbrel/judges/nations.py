"""Countries and what their people and things are called: "Canada" and "Canadian"."""

from __future__ import annotations

from collections.abc import Mapping

# As spoken of in the tokens of tokens.py; the first word stands for all that follow it.
_TABLE = """
afghanistan: afghan, afghani | albania: albanian | algeria: algerian | angola: angolan
argentina: argentine, argentinian | armenia: armenian | australia: australian | austria: austrian
azerbaijan: azerbaijani | bahrain: bahraini | bangladesh: bangladeshi | belarus: belarusian
belgium: belgian | bolivia: bolivian | bosnia: bosnian | brazil: brazilian | bulgaria: bulgarian
cambodia: cambodian | cameroon: cameroonian | canada: canadian | chad: chadian | chile: chilean
china: chinese | colombia: colombian | croatia: croatian | cuba: cuban | cyprus: cypriot
czech republic: czech, czechia | denmark: danish, dane | ecuador: ecuadorian | egypt: egyptian
england: english | estonia: estonian | ethiopia: ethiopian | fiji: fijian | finland: finnish, finn
france: french | gambia: gambian | georgia: georgian | germany: german | ghana: ghanaian | greece: greek
guatemala: guatemalan | haiti: haitian | honduras: honduran | hungary: hungarian
iceland: icelandic, icelander | india: indian | indonesia: indonesian | iran: iranian | iraq: iraqi
ireland: irish | israel: israeli | italy: italian | jamaica: jamaican | japan: japanese
jordan: jordanian | kazakhstan: kazakh | kenya: kenyan | kuwait: kuwaiti | latvia: latvian
lebanon: lebanese | libya: libyan | lithuania: lithuanian | luxembourg: luxembourgish, luxembourger
malaysia: malaysian | malta: maltese | mexico: mexican | moldova: moldovan | mongolia: mongolian
montenegro: montenegrin | morocco: moroccan | mozambique: mozambican | namibia: namibian
nepal: nepalese, nepali | netherlands: dutch, holland | new zealand: new zealander | nicaragua: nicaraguan
nigeria: nigerian | north korea: north korean | norway: norwegian | pakistan: pakistani
palestine: palestinian | panama: panamanian | paraguay: paraguayan | peru: peruvian
philippines: filipino, philippine | poland: polish, pole | portugal: portuguese | qatar: qatari
romania: romanian | russia: russian | rwanda: rwandan | saudi arabia: saudi, saudi arabian
scotland: scottish, scot | senegal: senegalese | serbia: serbian, serb | singapore: singaporean
slovakia: slovak, slovakian | slovenia: slovenian, slovene | somalia: somali | south africa: south african
south korea: south korean | spain: spanish, spaniard | sri lanka: sri lankan | sudan: sudanese
sweden: swedish, swede | switzerland: swiss | syria: syrian | taiwan: taiwanese | tanzania: tanzanian
thailand: thai | tunisia: tunisian | turkey: turkish, turk | uganda: ugandan | ukraine: ukrainian
uruguay: uruguayan | usa: american | uk: british, briton | uzbekistan: uzbek | venezuela: venezuelan
vietnam: vietnamese | wales: welsh | yemen: yemeni | zambia: zambian | zimbabwe: zimbabwean
europe: european | africa: african | asia: asian
"""


def _read(table: str) -> Mapping[str, str]:
    nations: dict[str, str] = {}
    for entry in table.replace("\n", "|").split("|"):
        country, _, others = entry.strip().partition(":")
        for name in (country, *others.split(",")):
            if name.strip():
                nations[name.strip()] = country
    return nations


NATIONS = _read(_TABLE)
# "A French physicist" names no other thing than "a physicist".
NATIONAL = frozenset(name for name, country in NATIONS.items() if name != country and " " not in name)
