"""Countries and what their people and things are called: "Canada" and "Canadian"."""

from __future__ import annotations

from collections.abc import Mapping

# As spoken of in the tokens of tokens.py; the first word stands for all that follow it.
_TABLE = """
afghanistan: afghan, afghani | albania: albanian | algeria: algerian | andorra: andorran | angola: angolan
antigua and barbuda: antiguan, barbudan, antigua | argentina: argentine, argentinian | armenia: armenian
australia: australian | austria: austrian | azerbaijan: azerbaijani | bahamas: bahamian | bahrain: bahraini
bangladesh: bangladeshi | barbados: barbadian, bajan | belarus: belarusian | belgium: belgian
belize: belizean | benin: beninese | bhutan: bhutanese | bolivia: bolivian
bosnia: bosnian, bosnia and herzegovina, herzegovinian | botswana: botswanan, motswana | brazil: brazilian
brunei: bruneian | bulgaria: bulgarian | burkina faso: burkinabe | burundi: burundian | cambodia: cambodian
cameroon: cameroonian | canada: canadian | cape verde: cape verdean, cabo verde, cabo verdean
central african republic: central african | chad: chadian | chile: chilean | china: chinese
colombia: colombian | comoros: comorian, comoran | congo: congolese | costa rica: costa rican
croatia: croatian | cuba: cuban | cyprus: cypriot | czech republic: czech, czechia | denmark: danish, dane
djibouti: djiboutian | dominica: | dominican republic: dominican | ecuador: ecuadorian | egypt: egyptian
el salvador: salvadoran, salvadorean, salvadorian | england: english
equatorial guinea: equatorial guinean, equatoguinean | eritrea: eritrean | estonia: estonian
eswatini: swazi, swaziland | ethiopia: ethiopian | fiji: fijian | finland: finnish, finn | france: french
gabon: gabonese | gambia: gambian | georgia: georgian | germany: german | ghana: ghanaian | greece: greek
grenada: grenadian | guatemala: guatemalan | guinea: guinean | guinea bissau: bissau guinean
guyana: guyanese | haiti: haitian | honduras: honduran | hungary: hungarian | iceland: icelandic, icelander
india: indian | indonesia: indonesian | iran: iranian | iraq: iraqi | ireland: irish | israel: israeli
italy: italian | ivory coast: ivorian, cote divoire | jamaica: jamaican | japan: japanese | jordan: jordanian
kazakhstan: kazakh, kazakhstani | kenya: kenyan | kiribati: i kiribati | kosovo: kosovar, kosovan
kuwait: kuwaiti | kyrgyzstan: kyrgyz, kyrgyzstani | laos: lao, laotian | latvia: latvian | lebanon: lebanese
lesotho: basotho, mosotho | liberia: liberian | libya: libyan | liechtenstein: liechtensteiner
lithuania: lithuanian | luxembourg: luxembourgish, luxembourger | madagascar: malagasy, madagascan
malawi: malawian | malaysia: malaysian | maldives: maldivian | mali: malian | malta: maltese
marshall islands: marshallese | mauritania: mauritanian | mauritius: mauritian | mexico: mexican
micronesia: micronesian | moldova: moldovan | monaco: monegasque, monacan | mongolia: mongolian
montenegro: montenegrin | morocco: moroccan | mozambique: mozambican | myanmar: burmese, burma
namibia: namibian | nauru: nauruan | nepal: nepalese, nepali | netherlands: dutch, holland
new zealand: new zealander | nicaragua: nicaraguan | niger: nigerien | nigeria: nigerian
north korea: north korean | north macedonia: macedonian, macedonia | norway: norwegian | oman: omani
pakistan: pakistani | palau: palauan | palestine: palestinian | panama: panamanian
papua new guinea: papua new guinean, papuan | paraguay: paraguayan | peru: peruvian
philippines: filipino, philippine | poland: polish, pole | portugal: portuguese | qatar: qatari
romania: romanian | russia: russian | rwanda: rwandan | samoa: samoan | san marino: sammarinese
sao tome and principe: sao tomean | saudi arabia: saudi, saudi arabian | scotland: scottish, scot
senegal: senegalese | serbia: serbian, serb | seychelles: seychellois | sierra leone: sierra leonean
singapore: singaporean | slovakia: slovak, slovakian | slovenia: slovenian, slovene
solomon islands: solomon islander | somalia: somali | south africa: south african | south korea: south korean
south sudan: south sudanese | spain: spanish, spaniard | sri lanka: sri lankan
st kitts and nevis: kittitian, nevisian | st lucia: st lucian | st vincent and grenadines: vincentian
sudan: sudanese | suriname: surinamese | sweden: swedish, swede | switzerland: swiss | syria: syrian
taiwan: taiwanese | tajikistan: tajik, tajikistani | tanzania: tanzanian | thailand: thai
timor leste: timorese, east timor, east timorese | togo: togolese | tonga: tongan
trinidad and tobago: trinidadian, tobagonian, trinbagonian, trinidad | tunisia: tunisian
turkey: turkish, turk | turkmenistan: turkmen | tuvalu: tuvaluan | uganda: ugandan | uk: british, briton
ukraine: ukrainian | united arab emirates: emirati, uae | uruguay: uruguayan | usa: american
uzbekistan: uzbek, uzbekistani | vanuatu: vanuatuan, ni vanuatu | venezuela: venezuelan | vietnam: vietnamese
wales: welsh | yemen: yemeni | zambia: zambian | zimbabwe: zimbabwean | europe: european | africa: african
asia: asian
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
