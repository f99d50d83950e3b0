"""Suite files of the right shape that mean nothing: the file, the line of the error, and words of it."""

from __future__ import annotations

from tests.suites.examples import HEAD

# What only the checks can see: values that depend on each other, and the facts.
MEANING_ERRORS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "a path longer than any": (
        f"suite: t\nfacts: {'a' * 5000}\nmonitor:\n",
        2,
        ("facts must be a file", "found 'aaa", "File name too long"),
    ),
    "an encoder's path longer than any": (
        HEAD + f"reliability: {{retrieval: {'a' * 5000}}}\n",
        3,
        ("retrieval of reliability must be tfidf", "found 'aaa"),
    ),
    "one figure by two names": (
        HEAD + "reliability:\n  gates:\n    cr: 0.1\n    accuracy: 0.1\n",
        6,
        ("'accuracy' and 'cr' of reliability are one figure; allowed: one of both",),
    ),
    "duplicate key": (
        HEAD + "monitor:\nseed: 1\nmonitor:\n",
        5,
        ("key 'monitor' stands twice", "line 3"),
    ),
    "duplicate slice key": (
        HEAD + "monitor:\n  slices:\n    P36:\n    P36:\n",
        6,
        ("key 'P36' stands twice", "the first is on line 5"),
    ),
    "key that is no text": (
        HEAD + "monitor:\n  slices:\n    no:\n",
        5,
        ("key must be text", "found false", "quotes"),
    ),
    "broken yaml": (
        HEAD + "monitor: {slices: [P36}\n",
        3,
        ("not valid YAML", "expected"),
    ),
    "tab": (
        HEAD + "monitor:\n\tlimit: 3\n",
        4,
        ("found a tab before the text; allowed: spaces",),
    ),
    "two documents": (
        HEAD + "monitor:\n---\na: 1\n",
        4,
        ("but found another document",),
    ),
    "empty file": ("# nothing\n", 1, ("the file is empty", "a mapping is needed")),
    "python tag": (
        HEAD + "monitor: !!python/name:os.system x\n",
        3,
        ("not valid YAML", "could not determine a constructor", "python/name"),
    ),
    "circle": (
        HEAD + "monitor: &m\n  gates: *m\n",
        3,
        ("an alias refers to a value that it is part of",),
    ),
    "impossible day": (
        HEAD
        + "reliability:\n  unseen: {count: 5, as_of: 2026-02-30, expires: 2028-01-01}\n",
        4,
        ("not a value: '2026-02-30'",),
    ),
    "expires first": (
        HEAD
        + "reliability:\n  unseen:\n    count: 5\n    as_of: 2028-01-01\n    expires: 2026-11-01\n",
        7,
        ("expires must be later than as_of (2028-01-01)", "found 2026-11-01"),
    ),
    "said twice": (
        HEAD + "monitor:\n  gates:\n    accuracy:\n      min: 0.1\n      gte: 0.2\n",
        7,
        ("'gte' of accuracy says 'min' a second time", "allowed: once"),
    ),
    "min above max": (
        HEAD + "monitor:\n  gates:\n    accuracy: {min: 0.9, max: 0.1}\n",
        5,
        ("no accuracy can pass", "found min 0.9 above max 0.1", "allowed: min <= max"),
    ),
    "missing facts file": (
        "suite: t\nfacts: fact.jsonl\nmonitor:\n",
        2,
        ("facts must be a file", "found 'fact.jsonl'", "did you mean 'facts.jsonl'?"),
    ),
    "missing relations file": (
        HEAD + "relations: none.yaml\nmonitor:\n",
        3,
        ("relations must be a file", "found 'none.yaml'", "looked for"),
    ),
    "unknown relation": (
        HEAD + "monitor:\n  slices: [P36, P5]\n",
        4,
        ("unknown slice 'P5' in monitor", "allowed: P36, P50", "did you mean 'P50'?"),
    ),
    "relation without facts": (
        HEAD + "monitor:\n  slices:\n    - P36\n    - P99\n",
        6,
        ("empty slice 'P99'", "found no fact", "at least 1 fact"),
    ),
    "empty bucket": (
        HEAD + "head_to_tail:\n  slices: [void-head]\n",
        4,
        ("empty slice 'void-head'", "no fact"),
    ),
    "unknown seen relation": (
        HEAD + "reliability:\n  relations: [P36, P51]\n",
        4,
        (
            "unknown relation 'P51' in reliability",
            "allowed: P36, P50",
            "did you mean 'P50'?",
        ),
    ),
    "duplicate seen relation": (
        HEAD + "reliability:\n  relations: [P36, P36]\n",
        4,
        ("'P36' stands twice in relations of reliability", "first is on line 4"),
    ),
    "unseen slice without questions": (
        HEAD + "reliability:\n  slices: [unseen-zero-shot]\n",
        4,
        (
            "empty slice 'unseen-zero-shot'",
            "found no 'unseen' key under reliability",
            "allowed: unseen: {count: 200, as_of: 2026-11-01, expires: 2028-01-01} there",
        ),
    ),
    "format without statements": (
        HEAD + "monitor:\n  formats: all\n  slices: [P36, P50]\n",
        5,
        (
            "'formats: all' needs 'statements' of relation 'P50'",
            "with [Y] at its end",
            "found 0",
        ),
    ),
    "gate on a format that is not asked": (
        HEAD + "monitor:\n  slices: [P36]\n  gates:\n    accuracy_wp: 0.1\n",
        6,
        (
            "accuracy_wp is measured with 'formats: all' of monitor",
            "found: questions",
            "allowed",
        ),
    ),
    "slice gate on a cost that is not counted": (
        HEAD
        + "monitor:\n  formats: all\n  slices:\n    P36:\n      gates: {saving_tokens: 2}\n",
        7,
        (
            "saving_tokens is measured with 'study: full' of monitor",
            "found: monitor",
            "allowed",
        ),
    ),
    "gate for no slice": (
        HEAD + "reliability:\n  gates:\n    ncr: 0.1\n    ur: 0.5\n",
        6,
        ("no slice has the metric ur", "found: known;", "allowed"),
    ),
    "overall gate without its slice": (
        HEAD + "reliability:\n  overall:\n    gates:\n      avg: 0.1\n",
        6,
        ("avg needs a slice unseen,", "found: known;", "allowed"),
    ),
    "gap without a tail": (
        HEAD
        + "head_to_tail:\n  slices: [culture-head]\n  overall: {gates: {gap: 0.5}}\n",
        5,
        ("gap needs a slice tail", "found: culture-head", "allowed"),
    ),
    "a waiver of an unknown fact": (
        HEAD
        + "monitor:\nwaivers:\n  - {fact: capital-3, owner: Ann, reason: known, expires: 2030-12-31}\n",
        5,
        (
            "unknown fact 'capital-3' in waivers",
            "allowed: the id of one of the suite's 16 facts",
        ),
    ),
    "a waiver of an unknown slice": (
        HEAD
        + "monitor:\nwaivers:\n  - {slice: 'monitor[P37]', owner: Ann, reason: known, expires: 2030-12-31}\n",
        5,
        (
            "unknown slice 'monitor[P37]' in waivers",
            "allowed: monitor[P36], monitor[P50], monitor[overall], pooled[overall]",
            "did you mean 'monitor[P3",
        ),
    ),
    "a waiver twice": (
        HEAD
        + "monitor:\nwaivers:\n"
        + "  - {fact: c3, owner: Ann, reason: known, expires: 2030-12-31}\n" * 2,
        6,
        ("fact 'c3' stands twice in waivers", "the first is on line 5"),
    ),
    "gates over everything and nothing but the top tenth": (
        HEAD
        + "head_to_tail: {slices: [geography-top10]}\noverall: {gates: {as_expected: 0.1}}\n",
        4,
        (
            "'overall' needs a slice that is not part of another",
            "found: head_to_tail[geography-top10]",
        ),
    ),
}
