from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.embedding import Encoder
from pytest_kbrel.models.registry import open_encoder
from tests.models.tiny_encoder import make_encoder
from tests.openai_server import BROKEN, GARBAGE, Fault, OpenAIServer, letters

TEXTS = [
    "what is the capital of france",
    "who wrote the book",
    "what is the capital of peru",
]


def opened(spec: str, args: str = "") -> Encoder:
    return Encoder(spec, partial(open_encoder, spec, args, Path()))


def embed(spec: str, texts: list[str]) -> np.ndarray:
    return opened(spec).embed(texts)


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers")
    return make_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


@pytest.mark.parametrize("spec", ["no/such-encoder", "./nowhere"])
def test_an_encoder_that_is_not_there(spec: str) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(
        ModelError, match=r"no sentence encoder can be loaded.*allowed: tfidf"
    ):
        embed(spec, TEXTS)


def test_an_encoder_gives_no_vector_after_its_files_changed(
    encoder_folder: Path, tmp_path: Path
) -> None:
    import shutil

    folder = shutil.copytree(encoder_folder, tmp_path / "changing")
    encoder = opened(f"hf/{folder}")
    encoder.embed(TEXTS[:1])
    with (folder / "1_Pooling" / "config.json").open("a") as stream:
        stream.write("\n")
    with pytest.raises(
        ModelError,
        match=rf"^config\.json of hf/{folder} changed while it was being read",
    ):
        encoder.embed(TEXTS)


def test_pickled_weights_are_refused(encoder_folder: Path, tmp_path: Path) -> None:
    import shutil

    import torch

    folder = tmp_path / "pickled"
    shutil.copytree(encoder_folder, folder)
    (weights,) = folder.rglob("*.safetensors")
    weights.unlink()
    torch.save({}, weights.with_name("pytorch_model.bin"))
    with pytest.raises(ModelError, match="no sentence encoder can be loaded"):
        embed(str(folder), TEXTS)


def test_without_the_package_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setattr("pytest_kbrel.models.hf.backend.find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r'pip install "pytest-kbrel\[embeddings\]"'
    ):
        embed("hf/some/encoder", TEXTS)


@pytest.fixture
def server(openai_server: OpenAIServer) -> OpenAIServer:
    pytest.importorskip("openai")
    return openai_server


def over(server: OpenAIServer, name: str = "encoder") -> Encoder:
    # Those of another backend are left out.
    args = f"base_url={server.base_url},max_retries=1,peft=x"
    return opened(f"openai/{name}", args)


def test_a_server_is_asked_for_each_text_once(server: OpenAIServer) -> None:
    encoder = over(server)
    result = encoder.embed([*TEXTS, TEXTS[0]])
    assert result == pytest.approx(
        np.array([letters(text) for text in [*TEXTS, TEXTS[0]]])
    )
    assert encoder.embed(TEXTS[1:]) == pytest.approx(result[1:3])
    (call,) = server.calls_to("embeddings")
    assert call.body["input"] == TEXTS


def test_many_texts_go_in_several_requests_and_come_back_in_order(
    server: OpenAIServer,
) -> None:
    texts = [f"{n} {'e' * n}" for n in range(300)]
    result = over(server).embed(texts)
    assert [len(call.body["input"]) for call in server.calls_to("embeddings")] == [
        128,
        128,
        44,
    ]
    assert [row[4] for row in result] == list(range(300))


def test_items_in_another_order_are_put_right(server: OpenAIServer) -> None:
    server.inject(Fault(change=lambda reply: reply["data"].reverse()))
    assert over(server).embed(TEXTS) == pytest.approx(
        np.array([letters(text) for text in TEXTS])
    )


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (BROKEN, "The server had an error"),
        (GARBAGE, "openai/encoder: "),
        (
            Fault(change=lambda reply: reply["data"].pop()),
            "for each of 3 texts expected",
        ),
        (
            Fault(change=lambda reply: reply["data"][0].update(index=1)),
            "for each of 3 texts expected",
        ),
        (
            Fault(change=lambda reply: reply["data"][0].update(embedding=[1.0])),
            "all of one length",
        ),
        (
            Fault(
                change=lambda reply: reply["data"][0]["embedding"].__setitem__(
                    0, float("nan")
                )
            ),
            "finite",
        ),
        (Fault(status=401, message="no"), "refuses the key"),
        (Fault(raw="null"), "for each of 3 texts expected"),
        (Fault(raw='{"data": {"index": 0}}'), "for each of 3 texts expected"),
        (Fault(raw="[" * 100_000), "nested more than"),
        *(
            (Fault(change=lambda reply, to=to: reply["data"][0].update(to)), "for each")
            for to in (
                {"index": None},
                {"index": -1},
                {"embedding": []},
                {"embedding": "AAAA"},
                {"embedding": [None]},
            )
        ),
    ],
)
def test_what_is_no_embedding_is_an_error(
    server: OpenAIServer, fault: Fault, words: str
) -> None:
    server.always = fault
    with pytest.raises(ModelError, match=words):
        over(server).embed(TEXTS)


def test_vectors_of_another_length_later_are_an_error(server: OpenAIServer) -> None:
    encoder = over(server)
    encoder.embed(TEXTS)
    server.embed = lambda text: [1.0]
    with pytest.raises(ModelError, match="all of one length"):
        encoder.embed(["another"])
