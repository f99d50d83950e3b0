from __future__ import annotations

import pytest
import transformers as tf
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models import tokens
from pytest_kbrel.models.tokens import PromptEncoder
from pytest_kbrel.records import GenerateRequest, ScoreRequest
from tests.models.tiny_checkpoints import SENTENCES, make_tokenizer


@pytest.fixture
def tokenizer_of(tmp_path):
    def make(around, **options):
        make_tokenizer(tmp_path, around, **options)
        return tf.AutoTokenizer.from_pretrained(tmp_path)

    return make


def causal(tokenizer, **options):
    return PromptEncoder(tokenizer, encoder_decoder=False, **options)


ASKED = (
    *(
        ScoreRequest(prompt=prompt, continuation=" Paris")
        for prompt in ("The capital is", "It is", "")
    ),
    ScoreRequest(prompt="It is", continuation=" the capital"),
    *(
        GenerateRequest(prompt=prompt, stop=(), max_new_tokens=1)
        for prompt in ("It is", "Is it", "")
    ),
)


def read_by(encoder):
    def read(request):
        scored = isinstance(request, ScoreRequest)
        return encoder.pair(request) if scored else encoder.prompt(request)

    return read


@pytest.mark.parametrize("around", ["", "bos", "bos eos"])
@pytest.mark.parametrize(
    "options",
    [
        {"encoder_decoder": True},
        {"encoder_decoder": False, "add_bos": False},
        {"encoder_decoder": False, "chat_template": True},
    ],
)
def test_texts_read_ahead_are_those_read_alone(
    tokenizer_of, around, options, monkeypatch
):
    tokenizer = tokenizer_of(around)
    if options.get("chat_template"):
        tokenizer.chat_template = "{{ messages[0]['content'] }}!"
    encoder = PromptEncoder(tokenizer, **options)
    results = []
    for count in (1, 2, 256):
        monkeypatch.setattr(tokens, "_AT_ONCE", count)
        results.append(encoder.read(ASKED, read_by(encoder)))
    assert results[0] == results[1] == results[2]
    readable, refused = results[0]
    assert sorted(n for n, _ in (*readable, *refused)) == [*range(len(ASKED))]
    assert encoder.read((), read_by(encoder)) == ([], [])


def test_of_texts_read_ahead_only_the_refused_one_fails(tokenizer_of):
    encoder = causal(tokenizer_of("bos"))
    nothing = ScoreRequest(prompt="It is", continuation=None)
    readable, refused = encoder.read([ASKED[0], nothing], read_by(encoder))
    assert [n for n, _ in readable] == [0]
    ((position, failure),) = refused
    assert (position, failure.error[:9]) == (1, "TypeError")


def test_bos_that_does_not_exist(tokenizer_of):
    with pytest.raises(ModelError, match="no BOS token"):
        causal(tokenizer_of("eos"), add_bos=True)


def test_token_across_the_boundary_belongs_to_the_continuation(tokenizer_of):
    tokenizer = tokenizer_of("bos")
    (whole,) = tokenizer(" Tokyo", add_special_tokens=False)["input_ids"]
    pair = causal(tokenizer).pair("is ", "Tokyo")
    assert pair.targets == (whole,)
    assert len(pair.prompt) == len(pair.context) + 1
    assert tokenizer.decode(pair.context) == "<s>is"


def test_a_prompt_that_melts_needs_a_token_to_start_from(tokenizer_of):
    with pytest.raises(
        ValueError, match=r"first token needs a BOS token, .* prefix_token_id=ID"
    ):
        causal(tokenizer_of("eos")).pair("Par", "is")


def test_nothing_to_score(tokenizer_of):
    with pytest.raises(ValueError, match="no tokens"):
        causal(tokenizer_of("bos")).pair("Paris", "")


def test_a_probability_is_cut_at_one_and_no_number_is_a_failure(tokenizer_of):
    encoder = causal(tokenizer_of("bos"))
    pair = encoder.pair("is", " Paris")
    count = len(pair.targets)
    assert {*encoder.scored(pair, (1.0000001,) * count).probabilities} == {1.0}
    nothing = encoder.scored(pair, (float("nan"),) * count)
    assert nothing.error == "not a number among the probabilities"


def test_metaspace_tokenizer_keeps_the_boundary():
    raw = Tokenizer(models.Unigram())
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=60,
        special_tokens=["<unk>", "<s>"],
        unk_token="<unk>",
        show_progress=False,
    )
    raw.train_from_iterator(SENTENCES * 4, trainer)
    tokenizer = tf.PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", unk_token="<unk>"
    )
    encoder = causal(tokenizer)
    pair = encoder.pair("The capital of Japan is", " Tokyo")
    assert tokenizer.decode(pair.targets) == "Tokyo"
    assert pair.context == pair.prompt == encoder.prompt("The capital of Japan is")


def test_chat_template_absent_or_broken(tokenizer_of):
    with pytest.raises(ModelError, match="tokenizer has none"):
        causal(tokenizer_of("bos"), chat_template=True)
    with pytest.raises(ModelError, match="does not work"):
        causal(
            tokenizer_of("bos", chat_template="{{ raise_exception('no users here') }}"),
            chat_template=True,
        )


@pytest.fixture(params=["<unk>", None], ids=["unknown", "dropped"])
def letters_only(request):
    """A tokenizer of lower letters without accents, for which others are unknown or nothing."""
    names = ["<unk>", "<s>", " ", *"abcdefghijklmnopqrstuvwxyz?"]
    vocabulary = {name: number for number, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token=request.param))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]
    )
    return tf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", unk_token=request.param
    )


@pytest.mark.parametrize(
    ("prompt", "continuation", "readable"),
    [
        ("Which town", " Málaga", True),
        ("Which town, then: ", "Lima", True),
        ("Which town", " 北京", False),
        ("Which 省", " lima", False),
    ],
)
@pytest.mark.parametrize("encoder_decoder", [True, False])
def test_what_a_tokenizer_cannot_read_is_an_error(
    letters_only, prompt, continuation, readable, encoder_decoder
):
    encoder = PromptEncoder(
        letters_only, encoder_decoder=encoder_decoder, prefix_token_id=1
    )
    if readable:
        assert encoder.pair(prompt, continuation).targets
        assert encoder.prompt(prompt)
        return
    with pytest.raises(ValueError, match="no tokens for some of the letters"):
        encoder.pair(prompt, continuation)
    if not prompt.isascii():
        with pytest.raises(ValueError, match="no tokens for some of the letters"):
            encoder.prompt(prompt)
