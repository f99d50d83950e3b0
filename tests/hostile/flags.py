"""What can be typed in flags, in the environment and in ini files."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

from pytest_kbrel.plugin.options import FLAGS
from tests.hostile.row import FAILED, PASSED, RUN, USAGE, Row

HUGE = "9" * 5000


def flag(typed: str, printed: str = "", exit: int = USAGE, what: str = "") -> Row:
    name = typed.partition("=")[0]
    return Row(what or typed, {}, exit, printed or name, args=(*RUN, typed))


def for_reference(typed: str, printed: str) -> Row:
    return Row(
        typed, {}, USAGE, printed, args=("--kb-model=reference", "suites", typed)
    )


def again(folder: str) -> Row:
    return Row(
        f"--kb-from-run={folder}",
        {},
        USAGE,
        folder,
        args=("suites", f"--kb-from-run={folder}"),
    )


def model(typed: str, printed: str, exit: int = USAGE, what: str = "") -> Row:
    return Row(what or typed, {}, exit, printed, args=(f"--kb-model={typed}", "suites"))


def for_server(args: str, printed: str, *more: str, what: str = "") -> Row:
    served = (
        "--kb-model=openai/judge",
        f"--kb-model-args=base_url=http://localhost:9/v1,{args}",
    )
    typed = " ".join((f"--kb-model-args={args}", *more))
    return Row(what or typed, {}, USAGE, printed, args=(*served, *more, "suites"))


def exported(path: str, printed: str) -> Row:
    args = ("--kb-model=openai/judge", "suites", f"--kb-export-requests={path}")
    return Row(f"--kb-export-requests={path}", {}, USAGE, printed, args=args)


def answers(what: str, line: str, printed: str) -> Row:
    return Row(
        what,
        {"bad.jsonl": line},
        USAGE,
        printed,
        args=("--kb-model=answers/bad.jsonl", "suites"),
    )


BAD_ANSWERS = {
    "a file of answers that is no JSON": "{",
    "a file of answers of 100,000 levels": "[" * 100_000,
    "a file of answers with a line of requests": '{"custom_id": "a", "method": "POST", "body": {}}\n',
    "a file of answers of another program": '{"custom_id": "a", "response": {"body": {}}}\n',
}
NUMBERS = [one for one in FLAGS if one.read not in (str, Path)]
ROWS = [
    *(flag(f"{one.flag}={HUGE}", what=f"{one.name}: 5,000 digits") for one in NUMBERS),
    *(
        flag(f"{one.flag}={text}")
        for one, text in zip(NUMBERS, cycle(("nan", "1e999", "0x10")), strict=False)
    ),
    flag("--kb-limit=-1"),
    flag("--kb-gpus-per-worker=0"),
    flag(
        "--kb-gpus-per-worker=2",
        "found without -n",
        what="GPUs for workers without workers",
    ),
    flag("--kb-limit=0"),
    flag("--kb-top-k=65"),
    flag("--kb-shard=0/4"),
    flag("--kb-shard=5/4"),
    flag("--kb-shard=auto", "SLURM_ARRAY_TASK_ID"),
    flag("--kb-shard-by=relation"),
    flag("--kb-until-decided=soon"),
    flag("--kb-limit=1.5"),
    flag("--kb-inconclusive=fial", "did you mean 'fail'"),
    flag("--kb-judge=oracle"),
    flag("--kb-judge=openai/", "openai/NAME"),
    for_reference("--kb-device=meta", "'meta'"),
    for_reference("--kb-device=cuda:99", "'cuda:99'"),
    for_reference("--kb-device=nonsense", "'nonsense'"),
    for_reference("--kb-device=cpu:7", "'cpu:7'"),
    for_reference("--kb-dtype=float33", "float33"),
    flag("--kb-device=cpu", "means nothing to a script", what="a device for a script"),
    flag(
        "--kb-dtype=float32",
        "means nothing to a script",
        what="a number type for a script",
    ),
    flag("--kb-baseline=../../etc"),
    flag("--kb-baseline=nowhere", "nowhere"),
    flag("--kb-baseline=/dev/null", "/dev/null"),
    flag("--kb-baseline=published/nobody", "published/nobody"),
    flag("--kb-baseline-update=published/mine", "published/mine"),
    flag(
        "--kb-baseline-update=" + "x" * 5000,
        "--kb-baseline-update",
        what="a baseline's name of 5,000 characters",
    ),
    flag("--kb-baseline-model=./nowhere", "nowhere"),
    again("nowhere"),
    again("suites"),
    again("/dev/zero"),
    flag("--kb-output-path=suites/facts.jsonl", "facts.jsonl"),
    flag("--kb-output-path=/dev/null/x"),
    flag("--kb-output-path=" + "x" * 5000, what="a folder's name of 5,000 characters"),
    flag("--kb-use-cache=suites/facts.jsonl", "facts.jsonl", PASSED),
    for_reference("--kb-model-args=dtype", "dtype"),
    for_reference("--kb-model-args=dtyp=float32", "did you mean 'dtype'"),
    for_reference("--kb-model-args=trust_remote_code=True", "trust_remote_code"),
    for_reference(
        "--kb-model-args=chat_template_args={", "no JSON: Expecting property name"
    ),
    Row(
        "a model's argument of 5,000 digits",
        {},
        USAGE,
        "max_length",
        args=("--kb-model=reference", "suites", f"--kb-model-args=max_length={HUGE}"),
    ),
    Row(
        "a judge without its key",
        {},
        USAGE,
        "KB_NO_SUCH_KEY",
        args=(
            *RUN,
            "--kb-judge=openai/judge",
            "--kb-judge-args=api_key_env=KB_NO_SUCH_KEY",
        ),
    ),
    Row(
        "a key that is typed",
        {},
        USAGE,
        "api_key",
        args=(
            "--kb-model=openai/gpt",
            "suites",
            "--kb-model-args=api_key=sk-0123456789abcdef",
        ),
    ),
    flag("--kb-baseline-reason=why"),
    flag("--kb-prices=1"),
    flag("--kb-prices=nan,nan"),
    flag("--kb-prices=-1,2"),
    *(
        for_server(f"max_tokens_total={n}", "max_tokens_total")
        for n in ("0", "-1", "nan", "1e6", "0x10")
    ),
    for_server(
        f"max_tokens_total={HUGE}",
        "max_tokens_total",
        what="max_tokens_total: 5,000 digits",
    ),
    *(
        for_server(f"max_cost={n}", "max_cost", "--kb-prices=1,1")
        for n in ("0", "-1", "nan", "inf", "5€")
    ),
    for_server("max_cost=1", "--kb-prices=IN,OUT"),
    for_server("max_tokens_total=1000", "max_tokens_total", "--kb-use-cache=off"),
    flag("--kb-nosuch=1", "unrecognized arguments"),
    Row("a seed in the environment", {}, USAGE, "KB_SEED", env={"KB_SEED": "x"}),
    Row(
        "a limit in the environment of 5,000 digits",
        {},
        USAGE,
        "KB_LIMIT",
        env={"KB_LIMIT": HUGE},
    ),
    Row(
        "a switch in the environment", {}, USAGE, "KB_PLAN", env={"KB_PLAN": "perhaps"}
    ),
    Row(
        "another switch in the environment",
        {},
        USAGE,
        "KB_JUNIT_PROPERTIES",
        env={"KB_JUNIT_PROPERTIES": "2"},
    ),
    Row(
        "a limit in the ini file",
        {"pytest.ini": "[pytest]\nkb_limit = ten\n"},
        USAGE,
        "kb_limit",
    ),
    model("", "--kb-model", USAGE, "no model"),
    model("./nowhere", "nowhere"),
    model("suites", "config.json"),
    model("/dev/zero", "/dev/zero"),
    model("reference:../../x", "../../x"),
    model("scripted/nowhere.jsonl", "nowhere.jsonl"),
    model("scripted/suites", "suites"),
    model("scripted//dev/zero", "/dev/zero"),
    model("openai/", "openai/NAME"),
    model("answers/", "answers/FILE"),
    model("answers/nowhere.jsonl", "nowhere.jsonl"),
    model("answers/suites", "suites/facts.jsonl:1"),
    model("answers//dev/zero", "/dev/zero"),
    flag(
        "--kb-export-requests=requests.jsonl",
        "openai/NAME",
        what="requests to a script",
    ),
    exported("suites", "suites"),
    exported("/dev/null/x", "/dev/null/x"),
    *(answers(what, line, "bad.jsonl:1") for what, line in BAD_ANSWERS.items()),
    model("vllm/", "no checkpoint named"),
    model("a" * 5000, "", what="a model's name of 5,000 characters"),
    model("org/na me", "org/na me"),
    model("org/name/more/levels", "org/name/more/levels"),
    Row(
        "a script that is no JSON",
        {"bad.jsonl": "{"},
        USAGE,
        "bad.jsonl",
        args=("--kb-model=scripted/bad.jsonl", "suites"),
    ),
    Row(
        "a script of 100,000 levels",
        {"bad.jsonl": "[" * 100_000},
        USAGE,
        "bad.jsonl",
        args=("--kb-model=scripted/bad.jsonl", "suites"),
    ),
    Row(
        "a script whose pattern never ends",
        {
            "bad.jsonl": '{"pattern": "^(a+)+$", "text": "x"}\n{"default": {"text": "unsure"}}\n'
        },
        FAILED,
        "",
        args=("--kb-model=scripted/bad.jsonl", "suites"),
    ),
    Row(
        "a script with a probability above 1",
        {"bad.jsonl": '{"default": {"text": "x", "probability": 7}}\n'},
        USAGE,
        "bad.jsonl:1",
        args=("--kb-model=scripted/bad.jsonl", "suites"),
    ),
]


def untyped() -> list[str]:
    """Return the flags with a value that no row types."""
    typed = " ".join(" ".join(row.args) for row in ROWS)
    return [
        flag.flag for flag in FLAGS if flag.metavar and flag.flag + "=" not in typed
    ]
