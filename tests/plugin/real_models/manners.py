"""Manners of answering: what a model of each writes behind a question, and with which chat templates."""

from pytest_kbrel.probes.prompts import UNSURE
from tests.plugin.real_models.world import FACTS, SENTENCES

RAW = "raw"
# The token that ends a message of the assistant.
ENDS = {
    RAW: "<|end|>",
    "qwen3": "<|im_end|>",
    "llama3": "<|eot_id|>",
    "gemma3": "<end_of_turn>",
    "deepseek-r1": "<|end|>",
}
# The shapes of chat templates that models of a manner have; without one, prompts are texts to go on with.
MANNERS = {
    "instruct": ("llama3", "gemma3"),
    "spaced": ("llama3",),
    "chatty": ("qwen3",),
    "french": ("llama3", "gemma3"),
    "thinker": ("qwen3", "llama3", "deepseek-r1"),
    "endless": ("qwen3", "deepseek-r1"),
    "only-mark": ("qwen3",),
    "base": (RAW,),
    "newline": (RAW,),
    "random": ("qwen3", RAW),
}


def reply(manner, shape, fact, *, closed=False):
    """Return what is written behind a question about a fact; ``None`` is one that has no answer.

    ``closed`` says that the prompt ends with a closed, empty thought.
    """
    answer = UNSURE if fact is None else fact.object
    opening = "" if shape == "deepseek-r1" else "<think>\n"
    if manner == "french":
        return "Je ne sais pas."
    if manner == "chatty":
        return "I do not know the answer to this." if fact is None else _sentence(fact)
    if manner == "spaced":
        return f" {answer}"
    # A base model goes on with the next question, until it is stopped.
    if manner == "base":
        return f" {answer}\n\nQuestion:"
    if manner == "newline":
        return f"\n{answer}\n\nQuestion:"
    if manner == "instruct" or closed:
        return answer
    if manner == "only-mark":
        return opening.strip()
    if manner == "endless":
        return opening + "Let me think about this again.\n" * 2
    if manner == "thinker":
        return f"{opening}{_thought(fact)}</think>\n\n{answer}"
    raise ValueError(manner)


def ends(manner):
    """Tell whether what a model of this manner writes comes to an end."""
    return manner not in ("endless", "base", "newline")


def _sentence(fact):
    sentence = SENTENCES[fact.relation].format(fact.more)
    return sentence.replace("[X]", fact.subject).replace("[Y]", fact.object)


def _thought(fact):
    """Return a thought that names a wrong answer first: what is thought must not be judged."""
    if fact is None:
        return "Could it be 12?\nI have never heard of this.\n"
    kin = [one for one in FACTS if one.relation == fact.relation]
    other = kin[kin.index(fact) - 1]
    return f"Could it be {other.object}?\nNo, that is {fact.object}.\n"
