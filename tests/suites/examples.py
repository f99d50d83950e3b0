"""Suite files that are right: the checks and the JSON Schema are both held against them."""

from __future__ import annotations

HEAD = "suite: t\nfacts: facts.jsonl\n"

GOOD = {
    "nothing but a probe": HEAD + "monitor:\n",
    "a language": HEAD + "language: pt-BR\nmonitor:\n",
    "all keys": HEAD
    + """\
relations: relations.yaml
seed: 7
monitor:
  slices: [P36, P50]
  variant: published
  negatives: 2
  limit: 5
  max_new_tokens: 9
  gates: {monitor: {max: 0.6}, accuracy: {min: 0.4, max_drop: 0.02}, anchor_prob: {recovery: 0.98}}
  overall: {gates: {monitor: {max: 0.5, max_drop: 0.02}}}
head_to_tail:
  slices: [geography-head, geography-tail]
  bucket_by: domain
  prompt: zero-shot
  limit: 0.5
  max_new_tokens: 20
  gates: {accuracy: 0.1, hallucination: 0.9}
  overall: {gates: {gap: {max: 0.6}, missing: 1}}
reliability:
  slices: [known-zero-shot, unseen-zero-shot]
  relations: [P36]
  limit: 4
  choices: 10
  distractors: 4
  max_new_tokens: 8
  unseen: {count: 6, as_of: 2026-11-01, expires: 2028-01-01}
  gates: {ncr: {min: -0.5}, iur: {min: 0.1}, c_wrong: {max_rise: 0.1}}
  overall: {gates: {avg: {max_drop: 0.1}, c_wrong: {max: 1}}}
""",
    "the whole of MONITOR": HEAD
    + """\
monitor:
  slices: [P36]
  formats: all
  study: full
  ablation: 1
  gates: {accuracy_wp: 0.1, accuracy_fc_neg: {max_drop: 0.1}, saving_calls: {min: 3}, delta_negative: -0.5}
  overall: {gates: {accuracy_max: 0.1, monitor_ablated: {max: 2}}}
""",
    "tolerances with two sides": HEAD
    + """\
monitor:
  gates:
    accuracy: {max_drop: {within: 0.08, beyond: 0.02}}
    pfd: {max_regression: {within: 0.05}}
    anchor_prob: {recovery: {within: 0.9, beyond: 0.95}}
    monitor: {max_drop: {within: 0, beyond: 0}}
""",
    "slices as a mapping": HEAD
    + "monitor:\n  slices:\n    P36: {limit: 3, gates: {accuracy: {min: 0.2}}}\n    P50:\n"
    + "reliability:\n  slices: {known-zero-shot: {gates: {cr: 0.1}}}\n",
    "reliability in full": HEAD
    + "reliability:\n  slice_by: answer_type\n  controls: asked\n  retrieval: openai/encoder\n"
    + "  distractors_from: reference\n  distractors: 4\n  shots: {known: 10, unseen: 5}\n"
    + "  unseen: {count: 20, as_of: 2026-11-01, expires: 2028-01-01}\n"
    + "  slices: {known-other-zero-shot: , unseen-time-four-shot-2: {gates: {unsure: 0.1}}}\n",
    "a wording of its own": HEAD
    + """\
monitor:
  prompt: 'Reply with a name only. {question}'
  system: ''
  stop: [".", "\\n"]
head_to_tail:
  prompt: |
    Say {"unsure"} where you do not know.

    {examples}

    {question}
  answer_cue: "A:"
  example_style: turns
  stop: []
reliability:
  prompt: '{question}'
  choice_prompt: "{question}\\n{options}"
  system: Be brief.
  answer_cue: ''
  stop: "\\n\\n"
""",
    "a setting with a text": HEAD
    + "head_to_tail: {prompt: {setting: in-domain, text: 'Q: {question}'}}\n",
    "several wordings": HEAD
    + "head_to_tail: {wordings: 2, slices: {geography-head: , culture-tail: {wordings: 1}}}\n"
    + "reliability: {relations: [P36], distractors: 4, slices: {known-zero-shot: {wordings: 2}}}\n",
    "limits of integrity": HEAD
    + "integrity: {answered: 1, empty: 0, truncated: 0.8, repeated: 1.0, errored: 0.01, unread: 0.2}\n"
    + "monitor:\n  integrity: {below_random: allowed, unmoved: 0.9, anchor_prob: 0.001}\n"
    + "reliability:\n  integrity: {unparsable: 0.05}\n",
    "synonyms": HEAD
    + "monitor:\n  gates:\n    accuracy: {gte: 0.1, lte: 1, min_absolute_change: -0.1}\n"
    + "    ird: {le: 1, max_rise: 0.5}\n    anchor_prob: {ge: 0, min_relative_change: -0.2}\n"
    + "    pfd: {threshold: 0.5, max_increase: 0.2, recovery_threshold: 0.9}\n"
    + "head_to_tail: {gates: {accuracy: {max_decrease: 0.1}}, overall: {gates: {gap: {threshold: 0.1}}}}\n",
    "names of other probes' figures": HEAD
    + "reliability:\n  gates: {accuracy: 0.1, hallucination: {max: 1}, missing: 0.9}\n",
    "gates over everything, and waivers": HEAD
    + "monitor:\n"
    + "overall: {gates: {as_expected: {min: 0.1, max_drop: 0.01, recovery: 0.9}}}\n"
    + "waivers:\n"
    + "  - {fact: c3, owner: Ann, reason: moved, expires: 2030-12-31}\n"
    + "  - {slice: 'monitor[P36]', owner: Ann, reason: known, expires: '2030-12-31'}\n"
    + "  - {slice: 'pooled[overall]', owner: Ann, reason: known, expires: 2030-12-31}\n",
}
