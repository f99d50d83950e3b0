from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel import reference
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.spec import (
    ModelSpec,
    Placement,
    check_path,
    parse_spec,
)
from pytest_kbrel.models.registry import BACKENDS, read_spec


def test_reference_resolves():
    spec = parse_spec("reference")
    assert (spec.text, spec.derived) == ("reference", "")
    assert spec.path == str(reference.resolve("")[0])
    assert (
        parse_spec("reference:int4").derived == reference.resolve("int4")[1] == "int4"
    )
    with pytest.raises(ModelError):
        parse_spec("reference:nothing-like-it")
    with pytest.raises(ModelError, match="another checkpoint"):
        parse_spec("reference", "pretrained=./here")


@pytest.mark.parametrize(
    ("text", "args", "name"),
    [
        ("./base", "dtype=float32", "./base"),
        ("./base", "peft=./my-lora", "./base + ./my-lora"),
        ("folder/", "gguf_file=model-Q4_K_M.gguf", "folder/model-Q4_K_M.gguf"),
        ("org/name", "revision=v2,subfolder=fp16", "org/name/fp16@v2"),
        ("vllm/org/name", "revision=v2", "vllm/org/name@v2"),
    ],
)
def test_reports_name_all_that_is_loaded(text, args, name):
    assert read_spec(text, args).name == name


def test_model_args():
    args = (
        "dtype=bf16,revision=main, peft=./adapter tokenizer=./tok max_length=512,add_bos_token=true,"
        "device=cuda:1,attn_implementation=eager,gguf_file=a.gguf,load_in_8bit=True,trust_remote_code=False"
    )
    assert parse_spec(
        "./here", args, batch_size="512", chat_template=True
    ) == ModelSpec(
        text="./here",
        path="./here",
        dtype="bfloat16",
        revision="main",
        peft="./adapter",
        tokenizer="./tok",
        max_length=512,
        add_bos_token=True,
        device="cuda:1",
        attn_implementation="eager",
        gguf_file="a.gguf",
        load_in_8bit=True,
        batch_size=512,
        chat_template=True,
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("dtyp=float32", "did you mean 'dtype'"),
        ("dtype=float31", "did you mean 'float32'"),
        ("dtype", "no value"),
        ("dtype=", "no value"),
        ("dtype=float32,dtype=float32", "twice"),
        ("trust_remote_code=True", "never runs code"),
        ("trust_remote_code=perhaps", "True or False"),
        ("add_bos_token=2", "True or False"),
        ("max_length=-5", "from 1 to 100,000,000, of tokens"),
        ("max_length=100000001", "from 1 to 100,000,000, of tokens"),
        ("prefix_token_id=1000000001", "from 0 to 1,000,000,000"),
        (
            "device_map=auto,max_cpu_memory=" + "9" * 5000,
            "allowed is a number of bytes",
        ),
        ("device_map=auto,max_memory_per_gpu=1.2.3GiB", "allowed is a number of bytes"),
        ('device_map={"a": 10000}', "a GPU by its number"),
        ("device_map=cuda:12345", "device_map=cuda:12345; allowed"),
        ("max_length=0", "from 1 to 100,000,000, of tokens"),
        ("load_in_4bit=True,load_in_8bit=True", "exclude each other"),
    ],
)
def test_wrong_model_args(args, said):
    with pytest.raises(ModelError, match=said):
        parse_spec("./here", args)


def test_flags_and_model_args_may_not_contradict():
    assert parse_spec("./here", "dtype=float32", dtype="fp32").dtype == "float32"
    with pytest.raises(ModelError, match="dtype is given twice"):
        parse_spec("./here", "dtype=float32", dtype="bfloat16")
    with pytest.raises(ModelError, match="device is given twice"):
        parse_spec("./here", "device=cpu", device="cuda")
    with pytest.raises(ModelError, match="batch size"):
        parse_spec("./here", batch_size="large")


@pytest.mark.parametrize("text", ["", "hf", "hf/", "  "])
def test_no_checkpoint_named(text):
    with pytest.raises(ModelError, match="no checkpoint named"):
        parse_spec(text)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "runs" / "final"
    made.mkdir(parents=True)
    (made / "config.json").write_text("{}")
    (made / "model.safetensors").write_bytes(b"")
    return made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("./nowhere", "no such folder"),
        ("nowhere", "no such folder"),
        ("runs/finl", "did you mean 'runs/final'"),
        ("/a/b/c", "no such folder"),
        ("runs/final/config.json", "a file"),
        ("runs", "no config.json"),
    ],
)
def test_check_path_refuses(folder, text, said):
    with pytest.raises(ModelError, match=said):
        check_path(parse_spec(text))


def test_check_path_of_adapter_and_gguf(folder):
    (Path("adapter")).mkdir()
    with pytest.raises(ModelError, match="from safetensors only"):
        check_path(parse_spec("runs/final", "peft=adapter"))
    with pytest.raises(ModelError, match=r"no file a\.gguf"):
        check_path(parse_spec("runs/final", "gguf_file=a.gguf"))
    (folder / "a.gguf").write_bytes(b"")
    with pytest.raises(ModelError, match=r"gguf_file=a\.gguf"):
        check_path(parse_spec("runs/final/a.gguf"))


def test_a_folder_of_gguf_files_says_how_they_are_named(folder):
    (folder / "b.gguf").write_bytes(b"")
    check_path(parse_spec("runs/final"))
    (folder / "model.safetensors").unlink()
    with pytest.raises(
        ModelError,
        match=r"no weights: .*; for GGUF weights add model-args gguf_file=b\.gguf$",
    ):
        check_path(parse_spec("runs/final"))
    (folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match=r"only pickled weights .* gguf_file=b\.gguf$"):
        check_path(parse_spec("runs/final"))
    (folder / "config.json").unlink()
    (folder / "a.gguf").write_bytes(b"")
    with pytest.raises(
        ModelError,
        match=r"no config\.json.* gguf_file=a\.gguf$",
    ):
        check_path(parse_spec("runs/final"))
    check_path(parse_spec("runs/final", "gguf_file=a.gguf"))


def test_a_version_of_a_folder_is_refused(folder):
    check_path(parse_spec("some-org/some-name", "revision=v1.0"))
    with pytest.raises(
        ModelError,
        match=r"revision=v1\.0 names a version on the hub, and this is a folder",
    ):
        check_path(parse_spec("runs/final", "revision=v1.0"))


@pytest.mark.parametrize(
    ("flag", "args", "used"),
    [(True, "", True), (True, "False", False), (False, "True", True)],
)
@pytest.mark.parametrize("backend", ["hf", "vllm"])
def test_an_argument_of_one_model_holds_against_the_flag_for_all(
    flag, args, used, backend
):
    given = f"apply_chat_template={args}" if args else ""
    spec = read_spec(f"{backend}/org/name", given, chat_template=flag)
    assert getattr(spec, "checkpoint", spec).chat_template is used


@pytest.mark.parametrize(
    ("args", "device", "placement"),
    [
        ("", "auto", None),
        ("parallelize=False", "auto", None),
        ("parallelize=True", "auto", Placement()),
        ("device=cuda,parallelize=True", "cuda", Placement()),
        ("device_map=auto", "auto", Placement()),
        ("device_map=balanced", "auto", Placement(device_map="balanced")),
        (
            "parallelize=True,device_map_option=sequential",
            "auto",
            Placement(device_map="sequential"),
        ),
        ("device_map=cuda:1", "cuda:1", None),
        ("device_map=1", "cuda:1", None),
        ("device_map=cpu,device=cpu", "cpu", None),
        (
            "parallelize=True,max_memory_per_gpu=10GiB,max_cpu_memory=1000,offload_folder=off",
            "auto",
            Placement(
                max_memory_per_gpu="10GiB", max_cpu_memory="1000", offload_folder="off"
            ),
        ),
        (
            'device_map={"a": 0, "b": "disk"}',
            "auto",
            Placement(device_map='{"a": 0, "b": "disk"}'),
        ),
    ],
)
def test_where_a_checkpoint_goes(args, device, placement):
    spec = parse_spec("./here", args)
    assert (spec.device, spec.placement) == (device, placement)
    assert BACKENDS[spec.backend].gpus(spec) == (None if placement else 0)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("device_map=balance", "did you mean 'balanced'"),
        ('device_map={"a": }', "device_map: no JSON"),
        ("device_map={}", "it is empty"),
        ('device_map={"a": "gpu"}', "'a' goes to 'gpu'; allowed: cpu, disk, or a GPU"),
        ('device_map={"a": -1}', "'a' goes to -1"),
        ('device_map={"a": true}', "'a' goes to True"),
        ("device_map=auto,device_map_option=balanced", "are one thing"),
        ("parallelize=True,device_map=cuda:0", "contradict each other"),
        (
            "parallelize=True,device=cpu",
            "device cpu and device_map=auto contradict each other",
        ),
        ("device_map=cuda:0,device=cuda:1", "device is given twice"),
        (
            "parallelize=True,max_memory_per_gpu=much",
            "a number of bytes, or as in 10GiB",
        ),
        ("max_cpu_memory=-1", "a number of bytes, or as in 10GiB"),
        ("parallelize=perhaps", "True or False"),
    ],
)
def test_what_cannot_be_a_place_is_refused(args, said):
    with pytest.raises(ModelError, match=said):
        parse_spec("./here", args)
