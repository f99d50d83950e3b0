"""Suite files of a wrong shape: the checks and the JSON Schema are both held against them."""

from __future__ import annotations

from pytest_kbrel.records import RULES
from tests.suites.examples import HEAD

# name: (text, line, parts of the message)
SHAPE_ERRORS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "not a mapping": (
        "- a\n- b\n",
        1,
        ("a suite file must be a mapping", "found a list"),
    ),
    "no suite": (
        "facts: facts.jsonl\nmonitor:\n",
        1,
        ("lacks the key 'suite'", "found: facts, monitor", "needed"),
    ),
    "no facts": (
        "suite: t\nmonitor:\n",
        1,
        ("lacks the key 'facts'", "found: suite, monitor", "needed"),
    ),
    "no probe": (HEAD, 1, ("no probe found", "monitor, head_to_tail, reliability")),
    "unknown key": (
        HEAD + "monitr:\n",
        3,
        ("unknown key 'monitr'", "allowed: suite", "did you mean 'monitor'?"),
    ),
    "blank name": (
        "suite: ' '\nfacts: facts.jsonl\nmonitor:\n",
        1,
        ("suite must be text", "found ' '"),
    ),
    "number for a name": (
        "suite: 5\nfacts: facts.jsonl\nmonitor:\n",
        1,
        ("text", "found 5", "quotes"),
    ),
    "seed as text": (
        HEAD + "seed: abc\nmonitor:\n",
        3,
        ("seed must be a whole number", "from 0 to", "found 'abc'"),
    ),
    "a language's name": (
        HEAD + "language: German\nmonitor:\n",
        3,
        ("a language tag", "found 'German'"),
    ),
    "a language that YAML reads as false": (
        HEAD + "language: no\nmonitor:\n",
        3,
        ("in quotes if text",),
    ),
    "seed below zero": (HEAD + "seed: -1\nmonitor:\n", 3, ("seed must be", "found -1")),
    "a billion choices": (
        HEAD + "reliability:\n  choices: 1000000000\n",
        4,
        (
            "choices of reliability must be a whole number from 1 to 1,000, found 1000000000",
        ),
    ),
    "a billion unseen questions": (
        HEAD
        + "reliability:\n  unseen: {count: 1000000000, as_of: 2026-11-01, expires: 2028-01-01}\n",
        4,
        ("count of unseen", "from 1 to 10,000", "found 1000000000"),
    ),
    "a billion examples": (
        HEAD + "reliability: {shots: {unseen: 1000000000}}\n",
        3,
        ("unseen of shots", "from 0 to 10,000", "found 1000000000"),
    ),
    "a limit of ten billion": (
        HEAD + "monitor: {limit: 10000000000}\n",
        3,
        ("limit of monitor", "from 1 to 1,000,000,000", "found 10000000000"),
    ),
    "a limit in percent": (
        HEAD + "monitor: {limit: 40%}\n",
        3,
        ("found '40%'",),
    ),
    "a bound in percent": (
        HEAD + "monitor:\n  gates:\n    accuracy: {min: '40%'}\n",
        5,
        ("'min' of accuracy must be a number, found '40%'",),
    ),
    "a gate in percent": (
        HEAD + "monitor:\n  gates:\n    accuracy: 2.5 %\n",
        5,
        ("the gate on accuracy must be a number", "found '2.5 %'"),
    ),
    "a tolerance in percent": (
        HEAD + "monitor:\n  gates:\n    accuracy: {max_drop: {within: 5%}}\n",
        5,
        ("'within' of 'max_drop' of accuracy must be a number", "found '5%'"),
    ),
    "a hexadecimal limit of thousands of digits": (
        HEAD + "monitor: {limit: 0x" + "f" * 50 + "}\n",
        3,
        ("limit of monitor", "found a number of about 60 digits"),
    ),
    "a limit that is a yes": (
        HEAD + "monitor: {limit: yes}\n",
        3,
        ("limit of monitor", "found true"),
    ),
    "a gate far beyond all figures": (
        HEAD + "monitor: {gates: {calls_monitor: 1.0e+20}}\n",
        3,
        ("calls_monitor must be at least 0 and at most 1e+12", "found 1e+20"),
    ),
    "probe as a list": (
        HEAD + "monitor: [P36]\n",
        3,
        ("monitor must be a mapping", "found a list"),
    ),
    "wrong variant": (
        HEAD + "monitor:\n  variant: publishd\n",
        4,
        (
            "one of definition, published",
            "found 'publishd'",
            "did you mean 'published'?",
        ),
    ),
    "a prompt without its question": (
        HEAD + "monitor:\n  prompt: Say it.\n",
        4,
        (
            "prompt of monitor",
            "{question} must stand in it once, found nowhere",
            "found 'Say it.'",
        ),
    ),
    "a prompt with two questions": (
        HEAD + "reliability:\n  prompt: |\n    {question}\n    {question}\n",
        4,
        ("{question} must stand in it once, found 2 times",),
    ),
    "an unknown place in a prompt": (
        HEAD + "head_to_tail:\n  prompt: 'Q: {question} {exampels}'\n",
        4,
        ("unknown placeholder {exampels}", "allowed: {question}, {examples}"),
    ),
    "examples behind the question": (
        HEAD + "reliability:\n  prompt: |\n    {question}\n    {examples}\n",
        4,
        ("{examples} must stand before {question}",),
    ),
    "an empty stop": (
        HEAD + "monitor:\n  stop: ['']\n",
        4,
        ("stop of monitor", "none of them empty"),
    ),
    "a number for a system message": (
        HEAD + "monitor:\n  system: 5\n",
        4,
        ("system of monitor", "text"),
    ),
    "unseen metric in a seen slice of a group": (
        HEAD
        + "reliability:\n  slice_by: answer_type\n  slices: {known-time-four-shot: {gates: {ur: 1}}}\n",
        5,
        ("unknown metric 'ur' in gates of slice known-time-four-shot",),
    ),
    "no slices": (
        HEAD + "monitor:\n  slices: []\n",
        4,
        ("at least one", "found an empty list"),
    ),
    "empty slices": (
        HEAD + "monitor:\n  slices: {}\n",
        4,
        ("at least one", "found an empty mapping"),
    ),
    "number for a slice": (
        HEAD + "monitor:\n  slices: [36]\n",
        4,
        ("text", "found 36", "quotes"),
    ),
    "duplicate slices": (
        HEAD + "monitor:\n  slices:\n    - P36\n    - P50\n    - P36\n",
        7,
        ("'P36' stands twice in slices of monitor", "the first is on line 5"),
    ),
    "unknown slice key": (
        HEAD + "monitor:\n  slices:\n    P36:\n      limits: 3\n",
        6,
        (
            "unknown key 'limits' in slice P36 of monitor",
            "allowed: limit, cluster, gates",
            "did you mean 'limit'?",
        ),
    ),
    "unknown reliability slice": (
        HEAD + "reliability:\n  slices: [seen]\n",
        4,
        (
            "unknown slice 'seen' in reliability",
            "allowed: known, unseen, known-zero-shot, unseen-zero-shot",
        ),
    ),
    "reliability slice of an earlier version": (
        HEAD + "reliability:\n  slices: [seen-zero-shot]\n",
        4,
        ("unknown slice 'seen-zero-shot'", "did you mean 'known-zero-shot'?"),
    ),
    "unknown reliability slice in a mapping": (
        HEAD + "reliability:\n  slices:\n    unseen-five-shot:\n",
        5,
        ("unknown slice 'unseen-five-shot'", "did you mean 'unseen-few-shot'?"),
    ),
    "slice of no bucket": (
        HEAD + "head_to_tail:\n  slices: [geography]\n",
        4,
        ("unknown slice 'geography'",),
    ),
    "gates of no probe": (
        HEAD + "gates: {accuracy: {min: 0.1}}\nmonitor:\n",
        3,
        ("'gates' stands too high in a suite file", "in questions, monitor"),
    ),
    "metric beside gates": (
        HEAD + "monitor:\n  accuracy: {min: 0.1}\n",
        4,
        ("'accuracy' stands too high in monitor", "in gates of monitor: gates: {acc"),
    ),
    "metric in a suite": (
        HEAD + "accuracy: {min: 0.1}\nmonitor:\n",
        3,
        ("'accuracy' stands too high in a suite file", "in gates of a probe"),
    ),
    "rule beside gates": (
        HEAD + "monitor:\n  max_drop: 0.1\n",
        4,
        ("'max_drop' stands too high in monitor", "gates: {METRIC: {max_drop: ...}}"),
    ),
    "rule without a metric": (
        HEAD + "monitor:\n  gates: {lte: 0.1}\n",
        4,
        ("'lte' stands too high in gates of monitor", "in a metric"),
    ),
    "figure beside gates over slices": (
        HEAD + "monitor:\n  overall: {monitor: {max: 1}}\n",
        4,
        ("'monitor' stands too high in overall of monitor", "in gates of overall"),
    ),
    "gates as a list": (
        HEAD + "monitor:\n  gates: [accuracy]\n",
        4,
        ("gates of monitor must be a mapping", "list"),
    ),
    "slice metric in overall": (
        HEAD + "reliability:\n  overall:\n    gates:\n      cr: {min: 0.1}\n",
        6,
        (
            "unknown metric 'cr' in gates of overall of reliability",
            "'cr' is a figure of slices of known",
        ),
    ),
    "unknown rule": (
        HEAD + "monitor:\n  gates:\n    accuracy:\n      max_dropp: 0.1\n",
        6,
        (
            "unknown rule 'max_dropp' in accuracy",
            f"allowed: {', '.join(RULES)}",
            "did you mean 'max_drop'?",
        ),
    ),
    "refused rule": (
        HEAD + "monitor:\n  gates:\n    accuracy: {gt: 0.1}\n",
        5,
        ("rule 'gt' has no equal here", "use 'min'", f"allowed: {', '.join(RULES)}"),
    ),
    "rise of a good metric": (
        HEAD + "monitor:\n  gates:\n    accuracy: {max_rise: 0.1}\n",
        5,
        ("'max_rise' would forbid an improvement of accuracy", "use 'max_drop'"),
    ),
    "demanded improvement": (
        HEAD + "monitor:\n  gates:\n    accuracy: {min_absolute_change: 0.1}\n",
        5,
        ("'min_absolute_change' must be at most 0", "found 0.1", "'max_drop'"),
    ),
    "relative change of a bad metric": (
        HEAD + "monitor:\n  gates:\n    pfd: {min_relative_change: -0.1}\n",
        5,
        ("'min_relative_change' is not defined for pfd", "use 'recovery'"),
    ),
    "relative change of everything": (
        HEAD + "monitor:\n  gates:\n    accuracy: {min_relative_change: -1}\n",
        5,
        ("(here 'recovery')", "above 0 and at most 1", "found 0"),
    ),
    "no rule": (
        HEAD + "monitor:\n  gates:\n    accuracy: {}\n",
        5,
        ("must have a rule", "found none", "allowed"),
    ),
    "negative drop": (
        HEAD + "monitor:\n  gates:\n    monitor: {max_drop: -0.1}\n",
        5,
        ("'max_drop' of monitor must be at least 0", "found -0.1"),
    ),
    "recovery of a difference": (
        HEAD + "reliability:\n  gates:\n    ncr: {recovery: 0.9}\n",
        5,
        ("'recovery' is a ratio, and ncr can be negative", "use 'max_drop'"),
    ),
    "unknown key of overall": (
        HEAD + "monitor:\n  overall:\n    gate: {}\n",
        5,
        (
            "unknown key 'gate' in overall of monitor",
            "allowed: gates",
            "did you mean 'gates'?",
        ),
    ),
    "unseen without a date": (
        HEAD + "reliability:\n  unseen: {count: 5, as_of: 2026-01-01}\n",
        4,
        (
            "unseen lacks the key 'expires'",
            "found: count, as_of",
            "needed: count, as_of, expires",
        ),
    ),
    "unseen with a word for a date": (
        HEAD + "reliability:\n  unseen: {count: 5, as_of: soon, expires: 2028-01-01}\n",
        4,
        ("as_of must be a date such as 2026-11-01", "found 'soon'"),
    ),
    "unknown limit of integrity": (
        HEAD + "integrity: {empty: 0.2,\n  truncate: 0.8}\nmonitor:\n",
        4,
        (
            "unknown key 'truncate' in integrity of a suite; allowed: answered, ",
            "did you mean 'truncated'?",
        ),
    ),
    "a limit of integrity that is no share": (
        HEAD + "monitor:\n  integrity:\n    errored: 20\n",
        5,
        (
            "errored in integrity of monitor must be a share, a number from 0 to 1, found 20",
        ),
    ),
    "a number where integrity takes a word": (
        HEAD + "integrity: {below_random: 0.5}\nmonitor:\n",
        3,
        (
            "below_random in integrity of a suite must be one of invalid, allowed, found 0.5",
        ),
    ),
    "no waivers": (
        HEAD + "monitor:\nwaivers: []\n",
        4,
        ("a list of waivers", "found an empty list"),
    ),
    "a waiver without an owner": (
        HEAD
        + "monitor:\nwaivers:\n  - {fact: c3, reason: known, expires: 2030-12-31}\n",
        5,
        (
            "a waiver lacks the key 'owner'",
            "found: fact, reason, expires",
            "needed: owner, reason, expires",
        ),
    ),
    "a waiver of nothing": (
        HEAD
        + "monitor:\nwaivers:\n  - {owner: Ann, reason: known, expires: 2030-12-31}\n",
        5,
        ("one 'fact' or one 'slice'", "found: owner, reason, expires"),
    ),
    "a blank reason": (
        HEAD
        + "monitor:\nwaivers:\n  - {fact: c3, owner: Ann, reason: ' ', expires: 2030-12-31}\n",
        5,
        ("reason of a waiver must be text", "found ' '"),
    ),
    "a waiver until some time": (
        HEAD
        + "monitor:\nwaivers:\n  - {fact: c3, owner: Ann, reason: known, expires: soon}\n",
        5,
        ("expires of a waiver must be a date such as 2026-11-01", "found 'soon'"),
    ),
    "a metric of a probe over everything": (
        HEAD + "monitor:\noverall: {gates: {accuracy: 0.1}}\n",
        4,
        (
            "unknown metric 'accuracy' in gates of overall",
            "allowed: as_expected",
            "'accuracy' is a figure of slices of monitor, head_to_tail",
        ),
    ),
    "a slice over everything": (
        HEAD + "monitor:\noverall: {slices: [P36]}\n",
        4,
        ("unknown key 'slices' in overall", "allowed: gates"),
    ),
    "a tolerance without its bound": (
        HEAD + "monitor:\n  gates:\n    pfd: {max_drop: {beyond: 0.1}}\n",
        5,
        ("'max_drop' of pfd lacks the key 'within'", "found: beyond"),
    ),
    "a part of a tolerance that is none": (
        HEAD + "monitor:\n  gates:\n    pfd: {max_drop: {within: 0.1, beyond: 2}}\n",
        5,
        ("'max_drop' of pfd must be at least 0 and at most 1", "found 2"),
    ),
}
