"""Checkpoints of set behaviour: small llamas whose weights are set by hand, so that nothing is trained.

One layer is enough. Its first head looks for the subject that is asked about, its second for the last mark of
a thought, and each unit of its MLP is one rule: behind this token, with this subject, in or behind a thought,
that token comes next. Small random numbers on top of all weights make the probabilities differ as a trained
model's do.
"""

import functools
import math

import torch
import transformers as tf

from pytest_kbrel.models.chat import ChatArgs, ChatTemplate, message
from pytest_kbrel.models.pretrained import quiet
from pytest_kbrel.probes.prompts import fill
from pytest_kbrel.records import record
from recipe.questions import brief, choice, qa
from tests.models.chat_shapes import SHAPES
from tests.plugin.real_models.manners import ENDS, RAW, ends, reply
from tests.plugin.real_models.tokens import CLOSES, FIRST, OPENS, PAD, make_tokenizer
from tests.plugin.real_models.world import FACTS, FRAMES

POSITIONS = 256
_HEAD = 32
# A country is no subject in questions about its future.
_FUTURE = (" medals", " led", " election", " match", " opponent")
_NOBODY = len(FACTS)
_NONE, _OPEN, _CLOSED = range(3)
# The number that all embeddings share: it is large, so that their norms are nearly equal.
_CONSTANT = 10.0
# Attention scores are this far apart, rules this steep, and the logit of what comes next this high.
_GAP, _STEEP, _LOGIT = 40.0, 40.0, 11.0
_NOISE = 0.02


@record
class Rule:
    """Behind the token ``behind``, with a subject and a phase of thought, ``then`` comes next."""

    behind: int
    subject: int
    phase: int
    then: int


def make_checkpoint(folder, manner, shape, *, seed=0):
    """Save the checkpoint of a manner with the chat template of a shape, and return its folder.

    ``shape`` is a key of ``SHAPES``, or ``raw`` for a base model without a template.
    """
    with quiet(), torch.random.fork_rng():
        torch.manual_seed(seed)
        tokenizer = _tokenizer()
        tokenizer.chat_template = None if shape == RAW else SHAPES[shape]
        if manner == "random":
            model = _model(tokenizer, width=256, rules=128)
            for weights in model.parameters():
                torch.nn.init.normal_(weights, std=0.35) if weights.dim() == 2 else None
        else:
            model = _with_rules(tokenizer, _rules(tokenizer, manner, shape))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


@functools.cache
def _tokenizer():
    return make_tokenizer()


def _rules(tokenizer, manner, shape):
    """Return what a model of a manner must do to write its replies; each follows from another state."""
    result = {}
    for number, fact in enumerate((*FACTS, None)):
        for prompt, closed in _prompts(tokenizer, shape, fact):
            ids = _ids(tokenizer, prompt)
            written = _ids(tokenizer, reply(manner, shape, fact, closed=closed))
            written += _ids(tokenizer, ENDS[shape]) if ends(manner) or closed else []
            for token in written:
                state = (ids[-1], number, _phase(tokenizer, ids))
                assert result.setdefault(state, token) == token, (
                    f"{manner}, {shape}: {state} is ambiguous"
                )
                ids.append(token)
    return tuple(
        Rule(behind=b, subject=s, phase=p, then=then)
        for (b, s, p), then in result.items()
    )


def _prompts(tokenizer, shape, fact):
    """Yield prompts that end in all the ways there are, each with whether a closed thought ends it."""
    if shape == RAW:
        frames = (
            [fill(frame, fact.subject) for frame in FRAMES[fact.relation]]
            if fact
            else []
        )
        yield from (
            (text, False)
            for text in (
                *frames,
                qa("Who?"),
                brief("Who?", shots=()),
                choice("Who?", ["a"]),
            )
        )
        return
    for closed in (False, True) if shape == "qwen3" else (False,):
        template = ChatTemplate(
            tokenizer, ChatArgs(enable_thinking=False if closed else None)
        )
        yield template.prompt([message("user", "Who?")]), closed


def _phase(tokenizer, ids):
    opens, closes = tokenizer.convert_tokens_to_ids([OPENS, CLOSES])
    return _CLOSED if closes in ids else _OPEN if opens in ids else _NONE


def _ids(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def _model(tokenizer, *, width, rules):
    config = tf.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=rules,
        num_hidden_layers=1,
        num_attention_heads=4,
        head_dim=_HEAD,
        attention_bias=True,
        tie_word_embeddings=False,
        max_position_embeddings=POSITIONS,
        # So slow that the slowest pair of numbers does not turn over the whole length.
        rope_theta=1e9,
        pad_token_id=tokenizer.convert_tokens_to_ids(PAD),
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.convert_tokens_to_ids(
            list(dict.fromkeys(ENDS.values()))
        ),
    )
    return tf.LlamaForCausalLM(config)


@torch.no_grad()
def _with_rules(tokenizer, rules):
    """Return a model that follows the rules."""
    tokens = sorted({rule.behind for rule in rules} | {rule.then for rule in rules})
    # Where in a vector which number stands.
    constant, asks, marks = range(3)
    subject = 3
    asked = subject + _NOBODY + 1
    phase = asked + _NOBODY + 1
    thought = phase + 3
    now = {token: thought + 3 + place for place, token in enumerate(tokens)}
    then = {token: place + len(tokens) for token, place in now.items()}
    width = math.ceil((thought + 3 + 2 * len(tokens)) / 64) * 64
    model = _model(tokenizer, width=width, rules=len(rules))
    for weights in model.parameters():
        torch.nn.init.normal_(
            weights, std=_NOISE / math.sqrt(weights.shape[-1])
        ) if weights.dim() == 2 else None
    embed = model.model.embed_tokens.weight
    embed[:, constant] += _CONSTANT
    for token, place in now.items():
        embed[token, place] += 1
    for number, fact in enumerate(FACTS):
        _mark(
            embed,
            tokenizer,
            (fact.subject, f" {fact.subject}"),
            {asks: 1, subject + number: 1},
        )
    _mark(embed, tokenizer, _FUTURE, {asks: 2, subject + _NOBODY: 1})
    _mark(
        embed,
        tokenizer,
        FIRST,
        {asks: 0.5, subject + _NOBODY: 1, marks: 0.5, phase + _NONE: 1},
    )
    _mark(embed, tokenizer, (OPENS,), {marks: 1, phase + _OPEN: 1})
    _mark(embed, tokenizer, (CLOSES,), {marks: 2, phase + _CLOSED: 1})
    # What the norms divide by; their weights undo it.
    root = _CONSTANT / math.sqrt(width)
    layer = model.model.layers[0]
    for norm in (
        layer.input_layernorm,
        layer.post_attention_layernorm,
        model.model.norm,
    ):
        norm.weight.fill_(root)
    attention = layer.self_attn
    for head, (score, first, to, count) in enumerate(
        ((asks, subject, asked, _NOBODY + 1), (marks, phase, thought, 3))
    ):
        slow = head * _HEAD + _HEAD // 2 - 1
        attention.q_proj.bias[slow] += _GAP * math.sqrt(_HEAD)
        attention.k_proj.weight[slow, score] += 1
        for place in range(count):
            attention.v_proj.weight[head * _HEAD + place, first + place] += 1
            attention.o_proj.weight[to + place, head * _HEAD + place] += 1
    for unit, rule in enumerate(rules):
        for place in (now[rule.behind], asked + rule.subject, thought + rule.phase):
            layer.mlp.gate_proj.weight[unit, place] += _STEEP
        layer.mlp.gate_proj.weight[unit, constant] -= 2.5 * _STEEP / _CONSTANT
        layer.mlp.up_proj.weight[unit, constant] += 1 / _CONSTANT
        # No two facts are known equally well.
        sure = 1 - 0.2 * (rule.subject * 7 % 24) / 24
        layer.mlp.down_proj.weight[then[rule.then], unit] += 2 * sure / _STEEP
    for token, place in then.items():
        model.lm_head.weight[token, place] += _LOGIT
    return model


def _mark(embed, tokenizer, texts, numbers):
    for text in texts:
        (token,) = _ids(tokenizer, text)
        for place, number in numbers.items():
            embed[token, place] += number
