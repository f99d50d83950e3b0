"""The parts of the store one by one: keys, folders, locks, what is looked after, and what remembers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path, PureWindowsPath

import pytest

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.caching_model import CachingModel
from pytest_kbrel.models.cache.location import Lock, is_held, make_folder, network_of
from pytest_kbrel.models.cache.maintenance import Maintenance
from pytest_kbrel.models.cache.store import FILE, Store, digest_of, key_of
from pytest_kbrel.models.session_cache import SessionCache
from pytest_kbrel.records import Failed, Fingerprint, Generated, GenerateRequest, Scored, ScoreRequest
from tests.function_model import FunctionModel

MODEL = Fingerprint(
    spec="here",
    backend="hf",
    backend_version="torch 2",
    architecture="A",
    parameters=1,
    weights_digest="w",
    tokenizer_digest="t",
    dtype="float32",
    device="cpu",
    derived="int4",
    chat_template=True,
    adds_bos=True,
    scoring_version=3,
    quantisation="int4",
    decoding="greedy",
)
SERVED = replace(MODEL, weights_digest="")
CHANGES = {
    **{"spec": "x", "backend": "x", "backend_version": "x", "architecture": "x", "parameters": 2},
    **{"weights_digest": "x", "tokenizer_digest": "x", "dtype": "x", "device": "x", "derived": "x"},
    **{"chat_template": False, "adds_bos": False, "scoring_version": 4, "quantisation": "x"},
    **{"decoding": "x", "prompting": "x"},
}
ASK = GenerateRequest(prompt="a", max_new_tokens=1, stop=("x",), num_beams=2, steps=True, watch=(1,))
SCORE = ScoreRequest(prompt="a", continuation="b")


@pytest.mark.parametrize(
    ("model", "of_no_matter"),
    [
        (MODEL, {"spec", "architecture", "parameters", "device"}),
        (SERVED, {"spec", "backend_version", "parameters", "scoring_version"}),
    ],
    ids=["a checkpoint", "a served model"],
)
def test_each_part_of_a_models_identity_makes_another(model, of_no_matter):
    digests = {name: digest_of(replace(model, **{name: value})) for name, value in CHANGES.items()}
    assert {name for name, digest in digests.items() if digest == digest_of(model)} == of_no_matter
    others = [digest for name, digest in digests.items() if name not in of_no_matter]
    assert len(set(others)) == len(others)
    assert set(CHANGES) == set(Fingerprint.__dataclass_fields__)


def test_a_digest_is_the_same_in_every_version():
    # Else all that was kept would be asked anew.
    said = {
        **{"adds_bos": True, "backend": "hf", "chat_template": True, "decoding": "greedy", "derived": "int4"},
        **{"dtype": "float32", "quantisation": "int4", "tokenizer": "t"},
    }
    here = {**said, "computed_by": "torch 2", "scoring": 3, "weights": "w"}
    served = {**said, "name": "A", "server": "cpu", "weights": ""}
    for model, wanted in ((MODEL, here), (SERVED, served)):
        text = json.dumps(wanted, sort_keys=True)
        assert digest_of(model) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("request_", "changes"),
    [
        (
            ASK,
            {
                **{"prompt": "b", "max_new_tokens": 2, "stop": (), "num_beams": 1, "steps": False},
                **{"watch": (), "system": "s", "turns": (("q", "a"),)},
            },
        ),
        (SCORE, {"prompt": "b", "continuation": "", "system": "s", "turns": (("q", "a"),)}),
    ],
)
def test_each_part_of_what_is_asked_makes_another_key(request_, changes):
    keys = [key_of("m", request_), key_of("n", request_)]
    keys += [key_of("m", replace(request_, **{name: value})) for name, value in changes.items()]
    assert len(set(keys)) == len(keys)
    assert set(changes) == set(type(request_).__dataclass_fields__)


@pytest.mark.parametrize(
    ("kind", "network"),
    [
        *((kind, True) for kind in ("nfs", "nfs4", "cifs", "smb", "smb3", "smbfs", "afs", "ceph", "lustre")),
        *(
            (kind, True)
            for kind in (
                "gpfs",
                "beegfs",
                "gluster",
                "glusterfs",
                "fuse.sshfs",
                "fuse.glusterfs",
                "wekafs",
                "panfs",
                "orangefs",
            )
        ),
        *((kind, True) for kind in ("fuse.ceph-fuse", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse")),
        *((kind, True) for kind in ("fuse.juicefs", "wekafs", "panfs", "orangefs")),
        *(
            (kind, False)
            for kind in ("ext4", "xfs", "tmpfs", "overlay", "fuse", "fuseblk", "fuse.lxcfs", "9p")
        ),
        ("autonfs", False),
    ],
)
def test_which_file_systems_several_machines_write(kind, network):
    assert network_of(Path("/x/y"), f"/dev/a / ext4 rw 0 0\nthere /x {kind} rw 0 0\n") == (
        kind if network else ""
    )


@pytest.mark.parametrize(
    ("mounts", "found"),
    [
        ("", ""),
        ("a / nfs rw\n", "nfs"),
        ("a /x nfs rw\nb /x ext4 rw\n", ""),
        ("b /x ext4 rw\na /x nfs rw\n", "nfs"),
        ("a /x/y nfs rw\nb /x ext4 rw\n", "nfs"),
        ("a /x/y/z nfs rw\n", ""),
        ("a /xy nfs rw\n", ""),
        ("a /x/y\n\na\n", ""),
    ],
)
def test_the_deepest_and_then_the_latest_mount_is_what_a_folder_lies_on(mounts, found):
    assert network_of(Path("/x/y"), mounts) == found


@pytest.mark.parametrize(
    ("name", "written"), [("a b", "a\\040b"), ("a\tb", "a\\011b"), ("a\nb", "a\\012b"), ("a\\b", "a\\134b")]
)
def test_names_of_mounts_are_read_as_the_kernel_writes_them(name, written):
    assert network_of(Path("/") / name / "c", f"there /{written} nfs rw\n") == "nfs"


class WindowsFolder:
    """A folder on Windows, where a mapped drive resolves to the share."""

    def __init__(self, path):
        self._path = path

    def resolve(self):
        return PureWindowsPath(self._path)


@pytest.mark.parametrize(
    ("path", "kind"), [(r"\\server\share\cache", "Windows share"), (r"C:\Users\me\cache", "")]
)
def test_a_share_of_windows_is_a_network_folder(path, kind):
    assert network_of(WindowsFolder(path), "") == kind


def test_a_folder_that_is_there_gets_no_file(tmp_path):
    make_folder(tmp_path / "a" / "b")
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == [".gitignore"]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
    make_folder(tmp_path / "a")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_a_lock_is_held_by_one_until_it_is_free(tmp_path):
    path = tmp_path / "x.lock"
    assert not is_held(path)
    assert not path.exists()
    lock, other = Lock(path), Lock(path)
    lock.free()
    assert lock.take()
    assert not other.take()
    assert is_held(path, patience=0.0)
    lock.free()
    lock.free()
    assert not is_held(path, patience=0.0)
    assert other.take()
    other.free()
    with pytest.raises(StoreError, match="cannot be locked"):
        Lock(tmp_path / "none" / "x.lock").take()


def text(said):
    return Generated(text=said, token_ids=(), finish="stop", prompt_tokens=1, prompt_digest="d")


def hexed(word):
    return hashlib.sha256(word.encode()).hexdigest()


@pytest.fixture
def upkeep(tmp_path):
    """Hold three answers of one model, made at 100, 200 and 300, and one of each of two others."""
    with contextlib.closing(Store(tmp_path)) as store:
        for name, count in (("one", 3), ("two", 1), ("three", 1)):
            model = replace(MODEL, weights_digest=name)
            answers = [(hexed(f"{name} {n}"), text(name * (n + 1))) for n in range(count)]
            store.put(answers, model)
        store.query(("UPDATE answers SET created = 100 * rowid", ()))
    with contextlib.closing(Maintenance(tmp_path)) as made:
        yield made


def test_models_are_told_with_when_and_how_much(upkeep):
    first, *others = upkeep.models()
    assert first.digest == digest_of(replace(MODEL, weights_digest="one"))
    assert first.model == replace(MODEL, weights_digest="one")
    assert (first.answers, first.first, first.last, first.for_one_run) == (3, 100, 300, False)
    assert first.characters > 100
    # As many answers each: by their digests.
    assert [one.answers for one in others] == [1, 1]
    assert [one.digest for one in others] == sorted(one.digest for one in others)


def test_a_model_is_found_by_how_its_digest_begins(upkeep):
    (first, *_) = upkeep.models()
    for beginning in (first.digest, first.digest[:20], first.digest[:20].upper()):
        assert upkeep.model(beginning) == first
    for beginning, said in [
        ("", "3 models begin so"),
        ("xyz", "no model begins so"),
        (first.digest[1:], "no m"),
    ]:
        with pytest.raises(StoreError, match=f"found '{beginning}', and {said}"):
            upkeep.model(beginning)
    upkeep.prune(model=first)
    upkeep.prune(model=upkeep.models()[0])
    # Of one model alone it must be said all the same.
    with pytest.raises(StoreError, match="1 models begin so"):
        upkeep.model("")
    upkeep.prune()
    with pytest.raises(StoreError, match="allowed: none, for nothing is kept"):
        upkeep.model("a")


@pytest.mark.parametrize(
    ("of_first", "before", "gone", "left"),
    [
        (True, None, 3, 2),
        (True, 200.0, 1, 4),
        (True, 200.9, 1, 4),
        (True, 201.0, 2, 3),
        (True, 0.0, 0, 5),
        (False, 0.0, 0, 5),
        (False, 301.0, 3, 2),
        (False, None, 5, 0),
    ],
)
def test_what_is_forgotten_is_of_that_model_and_older_than_that(upkeep, of_first, before, gone, left):
    model = upkeep.models()[0] if of_first else None
    assert upkeep.prune(model=model, before=before) == gone
    assert sum(one.answers for one in upkeep.models()) == left
    assert all(one.answers for one in upkeep.models())


def test_answers_are_told_in_the_order_they_came_with_whose_they_are(upkeep):
    lines = [json.loads(line) for line in upkeep.lines()]
    assert [line["created"] for line in lines] == [100, 200, 300, 400, 500]
    first = upkeep.models()[0]
    assert lines[:3] == [json.loads(line) for line in upkeep.lines(first)]
    assert lines[0] == {
        "key": hexed("one 0"),
        "model": first.digest,
        "created": 100,
        "answer": {
            **{"kind": "generated", "text": "one", "token_ids": [], "finish": "stop", "prompt_tokens": 1},
            **{"prompt_digest": "d", "steps": [], "thought": "", "thought_tokens": 0},
        },
    }


def test_more_answers_than_are_read_at_once_are_all_told(tmp_path):
    with contextlib.closing(Store(tmp_path)) as store:
        store.put(((hexed(str(n)), text(str(n))) for n in range(1001)), MODEL)
    with contextlib.closing(Maintenance(tmp_path)) as made:
        assert [json.loads(line)["answer"]["text"] for line in made.lines()] == [str(n) for n in range(1001)]


def test_the_size_of_a_store_is_that_of_all_its_files(tmp_path):
    Store(tmp_path).close()
    with contextlib.closing(Maintenance(tmp_path)) as made:
        (tmp_path / f"{FILE}-more").write_bytes(b"x" * 1000)
        (tmp_path / "other").write_bytes(b"x" * 1000)
        own = [path for path in tmp_path.iterdir() if path.name.startswith(FILE)]
        assert made.size() == sum(os.stat(path).st_size for path in own) > 1000


def test_of_many_keys_each_is_found_and_the_latest_answer_holds():
    cache = SessionCache()
    cache.put({hexed(str(n)): text(str(n)) for n in range(1001)})
    cache.put({hexed("0"): Failed(error="x")})
    found = cache.get([hexed(str(n)) for n in range(-5, 1001)])
    assert len(found) == 1001
    assert (found[hexed("0")], found[hexed("1000")].text) == (Failed(error="x"), "1000")


class AsReady(FunctionModel):
    """Hands its answers out in two batches, the later one first."""

    def generate_as_ready(self, requests):
        answers = self.generate(requests)
        yield list(enumerate(answers))[1:]
        yield [(0, answers[0])]

    def score_as_ready(self, requests):
        answers = self.score(requests)
        yield list(enumerate(answers))[1:]
        yield [(0, answers[0])]


def asked(count):
    return [GenerateRequest(prompt=f"q{n}", max_new_tokens=4) for n in range(count)]


@pytest.mark.parametrize("kind", [FunctionModel, AsReady])
def test_answers_come_in_order_however_a_model_hands_them_out(tmp_path, kind):
    model = kind(str.upper, lambda prompt, continuation: int(prompt[1:]) / 100)
    caching = CachingModel(model, Store(tmp_path))
    assert [one.text for one in caching.generate(asked(40))] == [f"Q{n}" for n in range(40)]
    scores = [ScoreRequest(prompt=f"q{n}", continuation=" x") for n in range(40)]
    assert [one.probabilities for one in caching.score(scores)] == [(n / 100,) for n in range(40)]
    assert caching.describe() == model.describe()
    caching.close()
    assert model.closed
    assert caching.store is None


def test_a_model_that_answers_at_once_is_asked_in_pieces(tmp_path):
    model = FunctionModel()
    sizes = []
    whole = model.generate
    model.generate = lambda requests: sizes.append(len(requests)) or whole(requests)
    caching = CachingModel(model, Store(tmp_path))
    caching.generate(asked(65))
    # What is lost where the process is killed is one piece at most.
    assert sizes == [32, 32, 1]
    caching.generate(asked(66))
    assert sizes == [32, 32, 1, 1]
    assert (caching.asked, caching.reused) == (131, 65)
    caching.close()


@pytest.mark.parametrize(
    ("served", "response", "kept"),
    [
        (False, text(""), True),
        (True, text(""), False),
        (True, text("\n "), False),
        (True, text("x"), True),
        (True, Scored(probabilities=(), token_ids=(), prompt_tokens=1, prompt_digest="d"), True),
        (False, Scored(probabilities=(1.5,), token_ids=(1,), prompt_tokens=1, prompt_digest="d"), False),
        (False, Failed(error="x"), False),
    ],
)
def test_which_answers_are_kept(tmp_path, served, response, kept):
    class Model(FunctionModel):
        def describe(self):
            return SERVED if served else MODEL

        def generate(self, requests):
            return [response] * len(requests)

        score = generate

    request = SCORE if isinstance(response, Scored) else ASK
    with contextlib.closing(Store(tmp_path)) as store:
        model = CachingModel(Model(), store)
        ask = model.score if request is SCORE else model.generate
        assert ask([request]) == [response]
        assert bool(store.get([key_of(digest_of(SERVED if served else MODEL), request)])) is kept
