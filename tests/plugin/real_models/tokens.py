"""The tokenizer of the small checkpoints: byte-level pieces, each word of their world one of them."""

import transformers as tf
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
    trainers,
)

from pytest_kbrel.facts.unseen import KINDS
from pytest_kbrel.probes.prompts import fill
from recipe.questions import brief, choice, qa
from tests.plugin.real_models.manners import ENDS, MANNERS, RAW, reply
from tests.plugin.real_models.world import FACTS, FRAMES

PAD, BOS = "<pad>", "<|begin|>"
OPENS, CLOSES = "<think>", "</think>"
# The tokens that begin prompts: BOS, or the first mark of a template without it.
FIRST = (BOS, "<|im_start|>")
_MARKS = (
    *(
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<start_of_turn>",
        "<|User|>",
        "<|Assistant|>",
    ),
    *dict.fromkeys(ENDS.values()),
)
# Line breaks stay with the punctuation before them, as in the tokenizers of Llama 3 and Qwen.
_SPLIT = (
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def make_tokenizer():
    """Return a fast tokenizer that knows every word of the world and the marks of all chat templates."""
    bare = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(_SPLIT), behavior="isolated")
    in_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bare.pre_tokenizer = pre_tokenizers.Sequence([split, in_bytes])
    bare.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4000,
        special_tokens=[PAD, *FIRST, *_MARKS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bare.train_from_iterator(list(_texts()), trainer)
    # As in the tokenizers of models that think, these are no special tokens: decoding keeps them.
    bare.add_tokens([AddedToken(mark, normalized=False) for mark in (OPENS, CLOSES)])
    bare.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, bare.token_to_id(BOS))]
    )
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=bare, pad_token=PAD, bos_token=BOS, eos_token=ENDS[RAW]
    )


def _texts():
    for fact in FACTS:
        for frame in FRAMES[fact.relation]:
            question = fill(frame, fact.subject)
            yield from (
                question,
                qa(question),
                brief(question, shots=()),
                choice(question, [fact.object]),
            )
            yield f"{fact.subject}\n{fact.object}"
    for manner, shapes in MANNERS.items():
        for fact in (None, *FACTS):
            if manner != "random":
                yield reply(manner, shapes[0], fact)
    for kind in KINDS:
        yield from (
            wording.replace("[X]", "").replace("[T]", "") for wording in kind.wordings
        )
