"""The table of all options, and reading their texts: from flags, environment and ini file, in this order.

This module is loaded in every pytest run of every project that has the plugin installed, so it imports
nothing but the standard library and pytest.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.bounds import (
    BATCH,
    DEVICES,
    FLAG_SEED,
    LIMIT,
    PRICE,
    TOP_K,
    limit_value,
    shown,
)
from pytest_kbrel.errors import closest
from pytest_kbrel.words import (
    ASK_ALL,
    DEFAULT_CACHE,
    DEFAULT_OUTPUT,
    NO_BUDGET,
    NO_CACHE,
    SUITE_SUFFIX,
    budget_value,
)

begun_key = pytest.StashKey[tuple[str, str]]()
# Keys of xdist's ``workerinput``: the day, since midnight may pass before a worker starts, and the run's id;
# and whether the workers share the cases.
BEGUN = "kbrel_begun"
SHARING = "kbrel_sharing"
# The key of xdist's ``workeroutput`` for what the worker has not told with an item.
NEWS = "kbrel_news"
# The files of a recorded run, of which a damaged one may lack either.
_RECORDED = ("report.json", "responses.jsonl")
_SHOWING = (
    "collectonly",
    "showfixtures",
    "show_fixtures_per_test",
    "markers",
    "cacheshow",
    "setupplan",
    "setuponly",
)
# The longest file name of Linux, macOS and Windows, in bytes.
_LONGEST_NAME = 255
# The metavars of settings that are never the name of a file.
_LONG = ("K=V,...", "TEXT")
# How alike, of 1, a variable must be to one of ours: KB_MODLE is, a project's own KB_MODEL_DIR is not.
_ALIKE = 0.75
_VARIABLE = "KB_"
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Flag:
    """One option: flag, ini key and environment variable are made of its name.

    The fields say all that the plugin knows of it: how it is read, and which others it needs and excludes.
    What else is checked of a value stands in ``preflight.py``.
    """

    name: str
    # That of a switch is empty; one in lower case lists the words that are allowed.
    metavar: str
    help: str
    default: str = ""
    _: KW_ONLY
    # The value if the flag is given without one.
    bare: str | None = None
    # Its ``ValueError`` says what was found and is allowed, unless ``allowed`` does.
    read: Callable[[str], Any] = str
    allowed: str = ""
    # The text that stands for ``None``.
    none: str | None = None
    # Whether it is a setting of a model that is asked: typed, it is refused beside a recorded run.
    asks: bool = False
    # Settings and options of pytest of which one must be given where this one is typed (or, with ``always``,
    # given anywhere), with their names for the user, and why.
    needs: tuple[str, str, str] = ("", "", "")
    always: bool = False
    # Settings beside which it may not be given, each with the reason.
    excludes: Mapping[str, str] = field(default_factory=dict)

    @property
    def flag(self) -> str:
        """The flag on the command line."""
        return "--kb-" + self.name.replace("_", "-")

    @property
    def ini(self) -> str:
        """The key in the ini file."""
        return "kb_" + self.name

    @property
    def environment(self) -> str:
        """The environment variable."""
        return _VARIABLE + self.name.upper()


def _batch_size(text: str) -> str:
    return text if text == "auto" else str(BATCH.integer(text))


def _prices(text: str) -> tuple[float, float]:
    prompt, written = (PRICE.number(part.strip()) for part in text.split(","))
    return prompt, written


_COMPLETE = "a blessed run is a complete one"
NOTHING_ASKED = "a recorded run asks nothing"
# The first six are those of a first gate, which ``pytest --help`` has in a group of their own.
_FIRST = 6
FLAGS = (
    Flag(
        "model",
        "SPEC",
        "Model to gate: a checkpoint's path or hub id, vllm/PATH to have vLLM run it, openai/NAME for "
        "one on a server, answers/FILE for answers made elsewhere (see --kb-export-requests), "
        "scripted/FILE for a script that plays one, "
        "'reference' for the embedded one, 'reference:NAME' for candidates "
        "(overconfident, gullible, int4, int3, pruned)",
        asks=True,
    ),
    Flag(
        "model_args",
        "K=V,...",
        "Loading options in lm-eval's words: dtype=bfloat16,...",
        asks=True,
    ),
    Flag(
        "apply_chat_template",
        "",
        "Wrap prompts in the model's chat template",
        asks=True,
    ),
    Flag(
        "baseline",
        "NAME|PATH",
        "Blessed run to compare with, or a paper's figures: published/...",
    ),
    Flag(
        "baseline_model",
        "SPEC",
        "Model to compare with in place of a baseline: it is asked the same prompts in this session",
        excludes={"baseline": "a run is compared with one of them"},
    ),
    Flag(
        "baseline_update",
        "NAME",
        "Bless this run under NAME (default: the name given to --kb-baseline) if it is complete",
        bare="",
        excludes={"until_decided": _COMPLETE},
    ),
    Flag(
        "baseline_reason",
        "TEXT",
        "Why this run is blessed; kept with the baseline",
        needs=(
            "baseline_update",
            "--kb-baseline-update",
            "it is kept with the baseline",
        ),
    ),
    Flag("device", "DEVICE", "Where it runs, such as cpu or cuda:0", "auto", asks=True),
    Flag(
        "gpus_per_worker",
        "N",
        "GPUs that each worker of pytest-xdist gets for itself; -n auto starts as many workers as there "
        "are GPUs for (default: those that the model needs)",
        read=DEVICES.integer,
        none="",
        asks=True,
        needs=("numprocesses tx", "-n", "it says what each worker gets"),
    ),
    Flag(
        "dtype",
        "DTYPE",
        "Number type of the weights, such as bfloat16",
        "auto",
        asks=True,
    ),
    Flag(
        "batch_size",
        "auto|TOKENS",
        "Tokens in one batch",
        "auto",
        read=_batch_size,
        allowed=f"auto or {BATCH}, of tokens",
        asks=True,
    ),
    Flag(
        "judge",
        "rules|SPEC",
        "Who decides whether an answer is right: rules, openai/NAME, or a checkpoint",
        "rules",
    ),
    Flag(
        "judge_args",
        "K=V,...",
        "Options of models that judge, write distractors or embed, as for --kb-model-args: base_url=...",
    ),
    Flag(
        "from_run",
        "DIR [DIR ...]",
        "Decide again over the recorded responses of an earlier run, or of all shards of one; no model "
        "is loaded",
        needs=(
            "from_run kb_model",
            "a recorded run",
            "one is decided again (an unset variable?)",
        ),
    ),
    Flag(
        "plan",
        "",
        "Say in seconds about what would run (calls, tokens, time, cost, gates) and run nothing; "
        "with -v exactly, for each slice, and what each gate could find",
        asks=True,
        excludes={"from_run": NOTHING_ASKED},
    ),
    Flag(
        "export_requests",
        "FILE",
        "Write what would be asked of openai/NAME, or what answers/FILE leaves open, as the input file "
        "of a batch (JSON Lines, for OpenAI's batch service or vllm run-batch), and stop",
        read=Path,
        none="",
        asks=True,
        excludes={
            "from_run": NOTHING_ASKED,
            "plan": "each takes the place of a run",
            "until_decided": "a file of requests has all of them",
        },
    ),
    Flag(
        "prices",
        "IN,OUT",
        "With --kb-plan, or max_cost in --kb-model-args: prices of a million tokens read and written, "
        "such as 0.15,0.60",
        read=_prices,
        allowed=f"two numbers, each {PRICE}: the prices of a million tokens read and written, such as "
        "0.15,0.60",
        none="",
        needs=(
            "plan has_max_cost",
            "--kb-plan or max_cost in --kb-model-args",
            "these reckon with prices",
        ),
    ),
    Flag(
        "inconclusive",
        "warn|fail",
        "What a case does that can neither pass nor fail",
        "warn",
    ),
    Flag(
        "top_k",
        "K",
        "Record up to K (at most 64) most probable tokens at each position of answers, for kl and "
        "top1_agreement against a baseline that has them too (hf/ and vllm/ models)",
        "0",
        read=TOP_K.integer,
        asks=True,
    ),
    Flag(
        "limit",
        "N|FRACTION",
        "Sample facts of each case, deterministically by fact id",
        read=limit_value,
        none="",
    ),
    Flag(
        "shard",
        "I/N|auto",
        "Ask only part I of N of the facts, dealt out by their ids, and decide nothing: kbrel merge or "
        "--kb-from-run joins the parts; auto: as the variables of SLURM arrays, Kubernetes and GitLab say",
        asks=True,
        excludes={
            "baseline_update": _COMPLETE,
            "until_decided": "a shard decides nothing, so that it cannot end early",
            "plan": "the plan is that of all shards together",
        },
    ),
    Flag(
        "shard_by",
        "fact|case",
        "Whether --kb-shard deals out facts or whole cases",
        "fact",
        needs=("shard", "--kb-shard", "it says what the shards share out"),
    ),
    Flag(
        "until_decided",
        "BUDGET",
        "Ask each case in up to ten parts, and stop where all its comparisons with the baseline are "
        "decided; of all cases together at most BUDGET facts, if given",
        bare=NO_BUDGET,
        read=budget_value,
        allowed=f"{LIMIT}, the most facts to ask, {NO_BUDGET} or {ASK_ALL}, written "
        "--kb-until-decided=BUDGET",
        # A recorded run says itself how far it asked.
        needs=(
            "compared_with from_run",
            "a baseline (--kb-baseline or --kb-baseline-model)",
            "only a comparison can be decided early",
        ),
        always=True,
    ),
    Flag(
        "seed",
        "N",
        "Replace the seed that suites state",
        read=FLAG_SEED.integer,
        none="",
    ),
    Flag("output_path", "DIR", "Folder of the reports", DEFAULT_OUTPUT, read=Path),
    Flag(
        "junit_properties",
        "",
        "With --junitxml: write the figures of a case as its properties, which Jenkins' xUnit plugin "
        "refuses, and not as its output",
        needs=("xmlpath", "--junitxml", "the figures go into its file"),
    ),
    Flag(
        "use_cache",
        "DIR|off",
        "Folder where answers are kept, so that nothing is asked twice and a killed run goes on",
        DEFAULT_CACHE,
        read=Path,
        none=NO_CACHE,
    ),
)
_BY_NAME = {flag.name: flag for flag in FLAGS}


def add_options(parser: pytest.Parser) -> None:
    """Declare every flag and ini key; environment variables need no declaration."""
    for name, about, flags in (
        ("kbrel", "gate a language model's knowledge", FLAGS[:_FIRST]),
        ("kbrel-further", "further flags", FLAGS[_FIRST:]),
    ):
        group = parser.getgroup(name, f"pytest-kbrel: {about}")
        for flag in flags:
            tail = f" (default: {flag.default})" if flag.default else ""
            twins = f" [ini: {flag.ini}, env: {flag.environment}]"
            extra: dict[str, Any] = {"action": "store_true"}
            if flag.metavar:
                extra = {"metavar": flag.metavar}
            if flag.bare is not None:
                extra |= {"nargs": "?", "const": flag.bare}
            group.addoption(
                flag.flag,
                dest=flag.ini,
                default=None,
                help=flag.help + tail + twins,
                **extra,
            )
            parser.addini(flag.ini, flag.help, type="string", default=None)


def is_active(config: pytest.Config) -> bool:
    """Return True if a model or a recorded run is configured."""
    return bool(text_of(config, "model") or text_of(config, "from_run"))


def is_deciding_again(config: pytest.Config) -> bool:
    """Return True if a recorded run is decided again.

    A model on the command line wins over a recorded run that only ini file or environment name.
    """
    wins = is_explicit(config, "model") and not is_explicit(config, "from_run")
    return bool(text_of(config, "from_run")) and not wins


def is_meant(config: pytest.Config) -> bool:
    """Return True if the session is about a model or a record, and not about the project's other tests."""
    typed = is_explicit(config, "model") or is_explicit(config, "from_run")
    return typed or bool(find_suites(config))


def is_explicit(config: pytest.Config, name: str) -> bool:
    """Return True if a flag is given, on the command line or in ``addopts``."""
    return config.getoption(_BY_NAME[name].ini, None) is not None


def is_on_command_line(config: pytest.Config, name: str) -> bool:
    """Return True if a flag was typed on the command line of this run, not in ``addopts``."""
    flag = _BY_NAME[name].flag
    arguments = map(str, config.invocation_params.args)
    return any(argument.partition("=")[0] == flag for argument in arguments)


def with_flags(config: pytest.Config, flags: Iterable[str]) -> list[str]:
    """Return the arguments of this run with further flags behind the flags among them."""
    given = [*map(str, config.invocation_params.args)]
    # All behind a bare ``--`` are names of files.
    end = given.index("--") if "--" in given else len(given)
    return [*given[:end], *flags, *given[end:]]


def is_listing_only(config: pytest.Config) -> bool:
    """Return True if this pytest run only lists things and runs no test, as with --collect-only."""
    return any(getattr(config.option, name, None) for name in _SHOWING)


def find_suites(config: pytest.Config) -> list[str]:
    """Return the suites that the arguments name, or that lie up to two levels deep in folders they name."""
    suites: list[Path] = []
    here = config.invocation_params.dir
    for argument in config.args:
        path = here / argument.partition("::")[0]
        if path.name.endswith(SUITE_SUFFIX):
            suites.append(path)
        else:
            for pattern in (f"*{SUITE_SUFFIX}", f"*/*{SUITE_SUFFIX}"):
                suites += sorted(path.glob(pattern))
    return list(dict.fromkeys(os.path.relpath(path, here) for path in suites))


def begun(config: pytest.Config) -> tuple[str, str]:
    """Return the day on which the run began, and its id: the same in every worker."""
    if begun_key not in config.stash:
        sent = getattr(config, "workerinput", {}).get(BEGUN)
        own = datetime.date.today().isoformat(), os.urandom(8).hex()
        config.stash[begun_key] = sent or own
    return config.stash[begun_key]


def take_further_runs(config: pytest.Config) -> None:
    """Take the recorded runs among pytest's arguments for further ones of --kb-from-run DIR DIR ...

    A flag of pytest takes one value, or all that follow it up to the next flag, the suites too.
    """
    here = config.invocation_params.dir
    if (first := config.getoption("kb_from_run", None)) is None:
        return
    runs = [
        text
        for text in config.args
        if any((here / text / name).is_file() for name in _RECORDED)
    ]
    if runs:
        config.option.kb_from_run = os.pathsep.join([first, *runs])
        rest = [text for text in config.args if text not in runs]
        config.args[:] = rest or config.getini("testpaths") or [str(here)]


def check_names(config: pytest.Config) -> None:
    """Raise ``UsageError`` for a variable or ini key that is none of ours and resembles one.

    It would have no effect: with a mistyped baseline nothing is compared, and all gates stay undecided.
    Sessions without a model and without suites may have any.
    """
    given = {name: "in the environment" for name, value in os.environ.items() if value}
    # pytest has no public list of them; before 9 it leaves those of -o out, and warns of none of those.
    keys = [*getattr(config, "_get_unknown_ini_keys", tuple)()]
    for text in config.getoption("override_ini", None) or ():
        keys.append(text.partition("=")[0])
    given |= dict.fromkeys(keys, "in the ini file or with -o")
    ours = {name for flag in FLAGS for name in (flag.environment, flag.ini)}
    # A variable in small letters is none of ours, nor meant to be.
    unknown = sorted(
        name
        for name in given.keys() - ours
        if name.startswith(_VARIABLE)
        or (name in keys and name.lower().startswith(("kb_", "kb-")))
    )
    if not unknown or not (is_active(config) or find_suites(config)):
        return
    for name in unknown:
        bare = name[len(_VARIABLE) :].lower().replace("-", "_")
        if near := closest(bare, _BY_NAME, _ALIKE):
            from pytest_kbrel.printing import printable

            flag = _BY_NAME[near]
            meant = flag.environment if name.startswith(_VARIABLE) else flag.ini
            raise pytest.UsageError(
                f"{printable(name)}: found {given[name]}, and no setting has this name; allowed: the names "
                f"in pytest --help; did you mean {meant!r}?"
            )


def text_of(config: pytest.Config, name: str) -> str:
    """Return a setting as text; raises ``UsageError`` for a file name that is too long."""
    flag = _BY_NAME[name]
    given = config.getoption(flag.ini, None)
    if given is None:
        given = (
            os.environ.get(flag.environment) or config.getini(flag.ini) or flag.default
        )
    text = str(given)
    parts = text.replace(os.pathsep, "/").encode("utf-8", "replace").split(b"/")
    if flag.metavar not in _LONG and max(map(len, parts)) > _LONGEST_NAME:
        most = f"at most {_LONGEST_NAME} bytes between slashes"
        raise refusal(config, name, f"found {shown(text)}; allowed: {most}")
    return text


def origin_of(config: pytest.Config, name: str) -> str:
    """Return where a setting was given: the flag, the environment variable or the ini key."""
    flag = _BY_NAME[name]
    if is_explicit(config, name):
        return flag.flag
    return flag.environment if os.environ.get(flag.environment) else flag.ini


def is_on(config: pytest.Config, name: str) -> bool:
    """Return True if a switch is on; raises ``UsageError`` unless the value is true or false."""
    text = text_of(config, name).lower()
    if text not in _TRUE + _FALSE:
        raise refusal(config, name, f"found {text!r}; allowed: true or false")
    return text in _TRUE


def refusal(config: pytest.Config, name: str, why: object) -> pytest.UsageError:
    """Return the error of a setting, which begins with where it was given."""
    return pytest.UsageError(f"{origin_of(config, name)}: {why}")


def only_one(
    config: pytest.Config, name: str, other: str, why: str
) -> pytest.UsageError:
    """Return the error of two settings of which only one may be given."""
    beside = f"found with {origin_of(config, other)}, and {why}"
    return refusal(config, name, f"{beside}; allowed: one of the two")
