"""Which way a metric of another tool is better, and whether it has a scale, as far as its name tells."""

from __future__ import annotations

import re

_LESS = re.compile(
    r"perplex|brier|toxic|halluc|cross.?ent|error|mistake|stereotyp|violat|harmful|unsafe|incorrect|inaccura"
    r"|wrong|distance|levenshtein|diverg|latency|fail|unfaithful|inconsist|contradict|profan|plagiar|leak"
    r"|timeout|attack|jailbreak|mismatch|bits.?per"
    r"|\b(ppl|loss(es)?|nll|ece|mce|wer|cer|ter|mer|wil|[rm]?mse|mae|mape|bp[bc]|errs?|kl|fpr|fnr|eer|crps|edits?)\b"
)
_MORE = re.compile(
    r"(?<!in)accura|exact|(?<!mis)match|(?<!in)correct|recall|precision|bleu|rouge|chrf|meteor|bertscore|likelihood"
    r"|truthful|(?<!un)faithful|relevan|helpful|harmless|coheren|fluen|(?<!in)consisten|success|solved|pearson"
    r"|spearman|^scores?$"
    r"|\b(acc|em|f1|pass(ed)?|comet|mcc|auc|auroc|auprc|ndcg|mrr|hits?|kappa|iou|win|logprobs?|safe|mc[12]|includes)\b"
)
# The opposite of what the other words say, or a difference of which either sign may be better.
_TURNED = re.compile(
    r"detect|reduc|skill|avoid|resist|diff|delta|gap\b|\b(non?|not|free|without|inv|inverse|anti|minus)\b|^1\b"
)
_UNBOUNDED = re.compile(
    r"perplex|entropy|distance|latency|likelihood|bits.?per|\b(ppl|loss(es)?|nll|bp[bc]|logprobs?)\b"
)


def _words(metric: str) -> str:
    # What stands behind a comma is the filter of lm_eval.
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", metric.partition(",")[0])
    return re.sub(r"[\W_]+", " ", name).lower()


def higher_is_better(metric: str) -> bool | None:
    """Return whether more of a metric is better; ``None`` where its name does not tell."""
    words = _words(metric)
    more, less = bool(_MORE.search(words)), bool(_LESS.search(words))
    return None if more == less or _TURNED.search(words) else more


def is_unbounded(metric: str) -> bool:
    """Return True if values within [0, 1] of one run and above 1 of another may be of one scale."""
    return bool(_UNBOUNDED.search(_words(metric)))
