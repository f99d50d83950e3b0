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
    "seed of 20 digits": (
        HEAD + f"seed: {10**20}\nmonitor:\n",
        3,
        ("seed must be", f"found {10**20}"),
    ),
    "a billion choices": (
        HEAD + "reliability:\n  choices: 1000000000\n",
        4,
        (
            "choices of reliability must be a whole number from 1 to 1,000, found 1000000000",
        ),
    ),
    "a thousand and one distractors": (
        HEAD + "reliability: {distractors: 1001}\n",
        3,
        ("from 4 to 1,000", "found 1001"),
    ),
    "a billion negatives": (
        HEAD + "monitor: {negatives: 1000000000}\n",
        3,
        ("from 1 to 1,000", "found 1000"),
    ),
    "an answer of a billion tokens": (
        HEAD + "head_to_tail: {max_new_tokens: 1000000000}\n",
        3,
        ("max_new_tokens of head_to_tail", "from 1 to 1,000,000", "found 1000000000"),
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
        ("found '40%'; did you mean 0.4?",),
    ),
    "a bound in percent": (
        HEAD + "monitor:\n  gates:\n    accuracy: {min: '40%'}\n",
        5,
        ("'min' of accuracy must be a number, found '40%'; did you mean 0.4?",),
    ),
    "a gate in percent": (
        HEAD + "monitor:\n  gates:\n    accuracy: 2.5 %\n",
        5,
        ("the gate on accuracy must be a number", "found '2.5 %'; did you mean 0.025?"),
    ),
    "a tolerance in percent": (
        HEAD + "monitor:\n  gates:\n    accuracy: {max_drop: {within: 5%}}\n",
        5,
        ("'within' of 'max_drop' of accuracy must be a number", "did you mean 0.05?"),
    ),
    "a decimal comma": (
        HEAD + "monitor:\n  gates:\n    accuracy: 0,4\n",
        5,
        ("found '0,4'; did you mean 0.4?",),
    ),
    "a number in quotes": (
        HEAD + "monitor: {negatives: '2'}\n",
        3,
        (
            "negatives of monitor must be a whole number",
            "found '2'; did you mean 2 without quotes?",
        ),
    ),
    "a hexadecimal limit of thousands of digits": (
        HEAD + "monitor: {limit: 0x" + "f" * 50 + "}\n",
        3,
        ("limit of monitor", "found a number of about 60 digits"),
    ),
    "a limit without end": (
        HEAD + "monitor: {limit: 1e400}\n",
        3,
        ("limit of monitor", "found inf"),
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
    "unknown setting": (
        HEAD + "monitor:\n  negatves: 5\n",
        4,
        (
            "unknown key 'negatves' in monitor",
            "allowed: slices, limit",
            "did you mean 'negatives'?",
        ),
    ),
    "setting of another probe": (
        HEAD + "monitor:\n  choices: 5\n",
        4,
        ("unknown key 'choices' in monitor",),
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
    "wrong format": (
        HEAD + "monitor:\n  formats: alle\n",
        4,
        ("one of questions, all", "found 'alle'"),
    ),
    "wrong study": (
        HEAD + "monitor:\n  study: fully\n",
        4,
        ("one of monitor, full", "did you mean 'full'?"),
    ),
    "an ablation of nothing": (
        HEAD + "monitor: {ablation: 0}\n",
        3,
        ("from 1 to 1,000", "found 0"),
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
    "choices without options": (
        HEAD + "reliability:\n  choice_prompt: 'Q: {question}'\n",
        4,
        ("choice_prompt of reliability", "{options} must stand in it once"),
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
    "an unknown style of examples": (
        HEAD + "reliability:\n  example_style: chat\n",
        4,
        ("one of text, turns", "found 'chat'"),
    ),
    "zero negatives": (
        HEAD + "monitor: {negatives: 0}\n",
        3,
        ("negatives of monitor", "from 1 to 1,000", "found 0"),
    ),
    "true for a number": (
        HEAD + "monitor: {negatives: true}\n",
        3,
        ("whole number", "found true"),
    ),
    "two distractors": (
        HEAD + "reliability: {distractors: 2}\n",
        3,
        ("from 4 to 1,000", "found 2"),
    ),
    "unseen metric in a seen slice of a group": (
        HEAD
        + "reliability:\n  slice_by: answer_type\n  slices: {seen-time-four-shot: {gates: {ur: 1}}}\n",
        5,
        ("unknown metric 'ur' in gates of slice seen-time-four-shot",),
    ),
    "shots without a number": (
        HEAD + "reliability: {shots: {seen: some}}\n",
        3,
        ("seen of shots",),
    ),
    "unknown control": (
        HEAD + "reliability: {controls: none}\n",
        3,
        ("one of counted, asked",),
    ),
    "limit zero": (
        HEAD + "monitor:\n  limit: 0\n",
        4,
        ("limit of monitor must be", "found 0"),
    ),
    "limit above one": (
        HEAD + "monitor:\n  limit: 1.5\n",
        4,
        ("share above 0", "found 1.5"),
    ),
    "limit as text": (
        HEAD + "monitor:\n  limit: many\n",
        4,
        ("whole number from 1", "found 'many'"),
    ),
    "no slices": (
        HEAD + "monitor:\n  slices: []\n",
        4,
        ("at least one", "found an empty list"),
    ),
    "slices as text": (
        HEAD + "monitor:\n  slices: P36\n",
        4,
        ("a list of names or a mapping", "found 'P36'"),
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
            "allowed: seen-zero-shot, unseen-zero-shot",
        ),
    ),
    "unknown reliability slice in a mapping": (
        HEAD + "reliability:\n  slices:\n    unseen-few-shot:\n",
        5,
        ("unknown slice 'unseen-few-shot'", "did you mean 'unseen-zero-shot'?"),
    ),
    "slice of no bucket": (
        HEAD + "head_to_tail:\n  slices: [geography]\n",
        4,
        ("unknown slice 'geography'",),
    ),
    "gates as a list": (
        HEAD + "monitor:\n  gates: [accuracy]\n",
        4,
        ("gates of monitor must be a mapping", "list"),
    ),
    "unknown metric": (
        HEAD + "monitor:\n  gates:\n    acuracy: 0.4\n",
        5,
        (
            "unknown metric 'acuracy' in gates of monitor",
            "allowed: monitor, pfd",
            "did you mean 'accuracy'?",
        ),
    ),
    "overall metric in a slice": (
        HEAD + "head_to_tail:\n  gates:\n    gap: {max: 0.1}\n",
        5,
        (
            "unknown metric 'gap'",
            "'gap' is a figure over all slices: it stands under 'overall",
        ),
    ),
    "slice metric in overall": (
        HEAD + "reliability:\n  overall:\n    gates:\n      cr: {min: 0.1}\n",
        6,
        (
            "unknown metric 'cr' in gates of overall of reliability",
            "'cr' is a figure of single slices",
        ),
    ),
    "unseen metric in a seen slice": (
        HEAD + "reliability:\n  slices:\n    seen-zero-shot: {gates: {ur: 0.5}}\n",
        5,
        (
            "unknown metric 'ur' in gates of slice seen-zero-shot of reliability",
            "allowed: cr, wr",
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
    "fall of a bad metric": (
        HEAD + "monitor:\n  gates:\n    pfd: {max_decrease: 0.1}\n",
        5,
        ("'max_decrease' would forbid an improvement of pfd", "use 'max_drop'"),
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
    "gate as text": (
        HEAD + "monitor:\n  gates:\n    accuracy: high\n",
        5,
        ("the gate on accuracy must be a number or a mapping", "found 'high'"),
    ),
    "bound as text": (
        HEAD + "monitor:\n  gates:\n    accuracy:\n      min: high\n",
        6,
        ("'min' of accuracy must be a number", "found 'high'"),
    ),
    "no rule": (
        HEAD + "monitor:\n  gates:\n    accuracy: {}\n",
        5,
        ("must have a rule", "found none", "allowed"),
    ),
    "percent": (
        HEAD + "monitor:\n  gates:\n    accuracy: {min: 40}\n",
        5,
        (
            "'min' of accuracy must be at least 0 and at most 1",
            "found 40",
            "did you mean 0.4?",
        ),
    ),
    "negative drop": (
        HEAD + "monitor:\n  gates:\n    monitor: {max_drop: -0.1}\n",
        5,
        ("'max_drop' of monitor must be at least 0", "found -0.1"),
    ),
    "drop beyond the range": (
        HEAD + "reliability:\n  gates:\n    ncr: {max_drop: 2.5}\n",
        5,
        ("at least 0 and at most 2", "found 2.5"),
    ),
    "recovery zero": (
        HEAD + "monitor:\n  gates:\n    accuracy: {recovery: 0}\n",
        5,
        ("'recovery' of accuracy must be above 0 and at most 1", "found 0"),
    ),
    "recovery of a difference": (
        HEAD + "reliability:\n  gates:\n    ncr: {recovery: 0.9}\n",
        5,
        ("'recovery' is a ratio, and ncr can be negative", "use 'max_drop'"),
    ),
    "plain number out of range": (
        HEAD + "monitor:\n  gates:\n    pfd: 1.5\n",
        5,
        ("'max' of pfd must be at least 0 and at most 1", "found 1.5"),
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
    "no unseen questions": (
        HEAD
        + "reliability:\n  unseen: {count: 0, as_of: 2026-01-01, expires: 2028-01-01}\n",
        4,
        ("count of unseen", "from 1 to 10,000", "found 0"),
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
    "a limit of integrity in percent": (
        HEAD + "integrity: {empty: 20%}\nmonitor:\n",
        3,
        (
            "empty in integrity of a suite must be a share, a number from 0 to 1, found '20%'",
        ),
    ),
    "a limit of integrity below 0": (
        HEAD + "integrity: {errored: -0.1}\nmonitor:\n",
        3,
        ("found -0.1",),
    ),
    "a number where integrity takes a word": (
        HEAD + "integrity: {below_random: 0.5}\nmonitor:\n",
        3,
        (
            "below_random in integrity of a suite must be one of invalid, allowed, found 0.5",
        ),
    ),
    "a wrong word in integrity": (
        HEAD + "head_to_tail:\n  integrity: {constant: allow}\n",
        4,
        ("must be one of invalid, allowed, found 'allow'", "did you mean 'allowed'?"),
    ),
    "integrity of a slice": (
        HEAD + "monitor:\n  slices:\n    P36: {integrity: {empty: 1}}\n",
        5,
        ("unknown key 'integrity'",),
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
    "a waiver without an end": (
        HEAD + "monitor:\nwaivers:\n  - {fact: c3, owner: Ann, reason: known}\n",
        5,
        ("a waiver lacks the key 'expires'",),
    ),
    "a waiver of nothing": (
        HEAD
        + "monitor:\nwaivers:\n  - {owner: Ann, reason: known, expires: 2030-12-31}\n",
        5,
        ("one 'fact' or one 'slice'", "found: owner, reason, expires"),
    ),
    "a waiver of both": (
        HEAD
        + "monitor:\nwaivers:\n"
        + "  - {fact: c3, slice: 'monitor[P36]', owner: Ann, reason: known, expires: 2030-12-31}\n",
        5,
        ("one 'fact' or one 'slice'", "found: fact, slice, owner"),
    ),
    "an unknown key of a waiver": (
        HEAD
        + "monitor:\nwaivers:\n  - {facts: c3, owner: Ann, reason: known, expires: 2030-12-31}\n",
        5,
        (
            "unknown key 'facts' in a waiver",
            "allowed: fact, slice",
            "did you mean 'fact'?",
        ),
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
            "under that probe",
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
    "an unknown part of a tolerance": (
        HEAD + "monitor:\n  gates:\n    pfd: {max_drop: {within: 0.1, byond: 0.1}}\n",
        5,
        ("unknown key 'byond' in 'max_drop' of pfd", "allowed: within, beyond"),
    ),
    "a part of a tolerance that is none": (
        HEAD + "monitor:\n  gates:\n    pfd: {max_drop: {within: 0.1, beyond: 2}}\n",
        5,
        ("'max_drop' of pfd must be at least 0 and at most 1", "found 2"),
    ),
    "two sides of a bound on the value": (
        HEAD + "monitor:\n  gates:\n    accuracy: {min: {within: 0.1}}\n",
        5,
        ("'min' of accuracy must be a number", "found a mapping"),
    ),
}
