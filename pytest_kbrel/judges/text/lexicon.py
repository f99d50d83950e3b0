"""Words that the rules treat in a special way. All are as :mod:`tokens` writes them."""

from __future__ import annotations

from collections.abc import Mapping


def listed(words: str) -> frozenset[str]:
    """Return the words of a text, each once."""
    return frozenset(words.split())


# They tie names together or frame an answer; none is an answer.
FUNCTION = listed("""
    a an the of in on at by to for from with and or but as is are was were be been being am has have had
    do does did it its he she they his her their him them this that these those there who whom whose
    which what when where why how also then than so such if into onto over under about around
    approximately between during since until after before through per via called named titled known
    considered i my me we our you your would could can will should may might must most commonly
    primarily mainly originally currently officially usually generally often now only just both either
    according answer correct possibly probably perhaps maybe likely
    definitely certainly surely actually really believe think guess
    """)
# "City of Paris" is Paris.
PLACES = listed(
    "city state kingdom republic county province island isle town village region district duchy "
    "commonwealth port municipality prefecture principality empire capital borough"
)
# The others begin names of things as well ("Prince Edward Island").
HONORIFICS = listed("mr mrs ms miss dr sir dame prof rev hon")
TITLES = listed("""
    mr mrs ms miss dr doctor prof professor sir dame lord lady baron baroness king queen prince princess
    emperor empress tsar pope saint st reverend rev father president senator captain capt general gen
    colonel col major maj lieutenant lt admiral sergeant judge justice chancellor governor sultan shah duke
    duchess count countess earl hon rabbi sheikh chief
    """)
# A city may be named with one of them behind.
REGIONS = listed(
    """
    alabama alaska arizona arkansas california colorado connecticut delaware florida georgia hawaii
    idaho illinois indiana iowa kansas kentucky louisiana maine maryland massachusetts michigan
    minnesota mississippi missouri montana nebraska nevada ohio oklahoma oregon pennsylvania tennessee
    texas utah vermont virginia wisconsin wyoming ontario quebec manitoba alberta saskatchewan
    queensland tasmania bavaria saxony tuscany sicily
    """
) | {
    "new jersey",
    "new mexico",
    "new hampshire",
    "rhode island",
    "north carolina",
    "south carolina",
    "north dakota",
    "south dakota",
    "west virginia",
    "british columbia",
    "nova scotia",
    "new south wales",
}
# Tying words that are given names as well, with a capital: "Will Smith", "A. Adams".
GIVEN = listed("a i will may")
SUFFIXES = listed("jr sr junior senior phd md esq obe cbe mbe kbe")
COMPANY = listed(
    "inc incorporated ltd limited llc plc corp corporation co company gmbh ag sa nv bv spa llp group "
    "holdings fc cf afc"
)
# Dropped from or put before a name, they make it another's.
DISTINGUISHING = listed("""
    north south east west northern southern eastern western northeast northwest southeast southwest
    central upper lower new old great greater lesser little big inner outer democratic people peoples
    equatorial anti non vice deputy assistant step grand half pseudo post pre ex former junior senior
    young younger elder first second third last federal national inter trans sub super ultra mini micro
    mega semi counter co neo proto
    """)
# A thing so described is still that thing.
MODIFIERS = listed("""
    very big large small tiny huge tall long short young adult male female common famous popular simple plain
    pure fresh single several many some most domestic wild local professional own real whole entire
    please thanks here
    """)
NEGATIONS = listed("not never neither nor no without except unlike cannot excluding")
NEGATING_PAIRS = frozenset({("rather", "than"), ("instead", "of"), ("other", "than"), ("apart", "from")})
# Between them stand the things a sentence speaks of.
FRAMES = listed(
    "is was are were be been being am has have had did does do by called named known who includes include"
)
# What follows them stands beside the answer.
BESIDE = listed("featuring feat starring unlike")
FALSE = listed("wrong incorrect false untrue mistaken")
CORRECTING = listed("actually wait sorry correction oops")
# A place told from another is not that other.
AWAY = listed("near outside beyond opposite")
DIRECTIONS = listed("""
    north south east west northeast northwest southeast southwest northern southern eastern western
    """)
SURROUNDINGS = listed("suburb suburbs outskirts neighbor neighbour neighborhood neighbourhood")
# "The wife of Bill Gates" is another person.
RELATIONS = listed("""
    wife husband spouse widow widower father mother parent parents son sons daughter daughters child
    children brother brothers sister sisters sibling cousin uncle aunt nephew niece grandson
    granddaughter grandfather grandmother stepson stepfather stepmother friend girlfriend boyfriend partner
    student pupil teacher rival enemy assistant secretary colleague successor predecessor
    descendant ancestor
    """)
# Where they are asked for, the answer may take up the question from the other end.
RELATED = listed("""
    married marry marries born family related relative relationship taught teach succeed succeeded
    preceded replaced replace royal dating date dated
    """)
# Well-known cities that name bridges, universities and the like.
CITIES = listed("""
    london paris rome berlin madrid vienna moscow tokyo beijing shanghai delhi mumbai cairo sydney
    melbourne toronto chicago boston detroit seattle dallas houston miami philadelphia manchester
    liverpool birmingham edinburgh glasgow dublin amsterdam brussels prague budapest warsaw lisbon athens
    istanbul oxford cambridge munich hamburg milan venice florence naples barcelona geneva zurich
    """)
PERSONS = listed("""
    who whom whose author writer actor actress singer director producer composer screenwriter president
    king queen scientist physicist player footballer musician artist painter poet inventor founder
    person man woman wife husband father mother son daughter brother sister character explorer
    politician novelist comedian minister mayor leader singer astronaut philosopher architect
    """)
# A gold may begin with one of them in small letters ("in Santa Monica"); an answer need not.
LEADING = listed("in on at as by to from for of with")
PARTICLES = listed("de del della der den di da du dos das la le van von zu ten ter al el bin ibn of")
NATIONALITY = listed("nationality country countries citizenship citizen nation where origin from")
# "Alien" and "Aliens" are two films.
WORKS = listed("film movie novel book song album series show play game opera band poem story episode title")
MOUNTAINS = listed("mountain mountains peak summit volcano")
EXACT_DAY = frozenset({"date", "day", "birthday", "dates"})

_NICKNAMES = """
abigail abby; albert al bert; alexander alex sandy; alfred alf fred; andrew andy drew; anthony tony;
arthur art; barbara barb; benjamin ben; bernard bernie; catherine kate cathy katie; charles charlie
chuck; christopher chris; clinton clint; daniel dan danny; david dave; deborah debbie; donald don;
dorothy dot; edward ed eddie ted ned; elizabeth liz beth betty lizzie; eugene gene; francis frank;
frederick fred freddie; gerald gerry jerry; gregory greg; harold harry hal; henry harry hank; jacob jake;
james jim jimmy jamie; jeffrey jeff; jennifer jen jenny; john johnny jack; joseph joe joey; joshua josh;
katherine kate kathy; kenneth ken; lawrence larry; leonard len lenny; louis lou; margaret maggie meg
peggy; martin marty; matthew matt; michael mike mick mickey; nathaniel nat; nicholas nick; patricia pat
patty; patrick pat paddy; peter pete; philip phil; raymond ray; rebecca becky; richard rick dick rich
ricky; robert bob rob bobby robbie; ronald ron ronnie; samuel sam sammy; stephen steve; steven steve;
susan sue susie; terence terry; theodore ted theo; thomas tom tommy; timothy tim; victoria vicky; vincent
vince; walter walt; william bill will billy willy; zachary zach
"""


def _nicknames(table: str) -> Mapping[str, frozenset[str]]:
    full: dict[str, set[str]] = {}
    for entry in table.replace("\n", " ").split(";"):
        name, *shorts = entry.split()
        for short in (name, *shorts):
            full.setdefault(short, set()).add(name)
    return {short: frozenset(names) for short, names in full.items()}


FULL_NAMES = _nicknames(_NICKNAMES)
# Several words that stand for one, longest first. "US" and "us" are told apart by their capitals.
PHRASES: Mapping[tuple[str, ...], str] = {
    ("united", "states", "of", "america"): "usa",
    ("united", "states"): "usa",
    ("u", "s", "a"): "usa",
    ("u", "s"): "usa",
    ("united", "kingdom"): "uk",
    ("u", "k"): "uk",
}
WORDS: Mapping[str, str] = {
    "saint": "st",
    "mount": "mt",
    "mister": "mr",
    "doctor": "dr",
    "professor": "prof",
    "centre": "center",
    "theatre": "theater",
    "colour": "color",
    "harbour": "harbor",
    "defence": "defense",
    "grey": "gray",
    "versus": "vs",
    "bce": "bc",
    "ce": "ad",
    "jnr": "jr",
    "snr": "sr",
    "ave": "avenue",
    "blvd": "boulevard",
    "rd": "road",
}
UNITS: Mapping[str, str] = {
    name: unit
    for unit, names in {
        "km": "km kilometre kilometres kilometer kilometers",
        "m": "m metre metres meter meters",
        "cm": "cm centimetre centimetres centimeter centimeters",
        "mm": "mm millimetre millimetres millimeter millimeters",
        "mile": "mile miles mi",
        "ft": "ft foot feet",
        "inch": "inch inches",
        "yard": "yard yards yd",
        "kg": "kg kilogram kilograms kilogramme kilogrammes",
        "g": "g gram grams gramme grammes",
        "pound": "pound pounds lb lbs gbp",
        "litre": "litre litres liter liters l",
        "ml": "ml millilitre millilitres milliliter milliliters",
        "second": "second seconds sec secs",
        "minute": "minute minutes min mins",
        "hour": "hour hours hr hrs",
        "day": "day days",
        "week": "week weeks",
        "month": "month months",
        "year": "year years yr yrs",
        "percent": "percent pct",
        "dollar": "dollar dollars usd",
        "euro": "euro euros eur",
        "degree": "degree degrees",
        "celsius": "celsius",
        "fahrenheit": "fahrenheit",
        "acre": "acre acres",
        "hectare": "hectare hectares ha",
        "tonne": "tonne tonnes ton tons",
        "watt": "watt watts",
    }.items()
    for name in names.split()
}
