"""The table of all options, and reading them: from flags, environment and ini file, in this order.

This module is loaded in every pytest run of every project that has the plugin installed, so it imports
nothing but the standard library and pytest.
"""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_kbrel.bounds import shown
from pytest_kbrel.errors import closest
from pytest_kbrel.words import DEFAULT_CACHE, DEFAULT_OUTPUT, NO_BUDGET, SUITE_SUFFIX

begun_key = pytest.StashKey[tuple[str, str]]()
# Keys of xdist's ``workerinput``: the day, since midnight may pass before a worker starts, and the run's id;
# and whether the workers share the cases.
BEGUN = "kbrel_begun"
SHARING = "kbrel_sharing"
# The key of xdist's ``workeroutput`` for what the worker has not told with an item.
NEWS = "kbrel_news"
# The attribute of pytest's options for the recorded runs behind the first one of --kb-from-run.
FURTHER_RUNS = "kb_further_runs"
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
# The settings that are never the name of a file.
_LONG = ("model_args", "judge_args", "baseline_reason")
# How alike, of 1, a variable must be to one of ours: KB_MODLE is, a project's own KB_MODEL_DIR is not.
_ALIKE = 0.75
_VARIABLE = "KB_"
# The flags of a first gate, which ``pytest --help`` has in a group of their own.
_FIRST = (
    "model",
    "model_args",
    "apply_chat_template",
    "baseline",
    "baseline_model",
    "baseline_update",
)
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def add_options(parser: pytest.Parser) -> None:
    """Declare every flag and ini key; environment variables need no declaration."""
    first, rest = (
        parser.getgroup(name, f"pytest-kbrel: {about}")
        for name, about in (
            ("kbrel", "gate a language model's knowledge"),
            ("kbrel-further", "further flags"),
        )
    )
    for flag in FLAGS:
        tail = f" (default: {flag.default})" if flag.default else ""
        twins = f" [ini: {flag.ini}, env: {flag.environment}]"
        extra: dict[str, Any] = (
            {"action": "store_true"} if flag.switch else {"metavar": flag.metavar}
        )
        if flag.bare is not None:
            extra |= {"nargs": "?", "const": flag.bare}
        (first if flag.name in _FIRST else rest).addoption(
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
    return config.getoption(_flag(name).ini, None) is not None


def is_on_command_line(config: pytest.Config, name: str) -> bool:
    """Return True if a flag was typed on the command line of this run, not in ``addopts``."""
    flag = _flag(name).flag
    arguments = map(str, config.invocation_params.args)
    return any(argument.partition("=")[0] == flag for argument in arguments)


def is_listing_only(config: pytest.Config) -> bool:
    """Return True if this pytest run only lists things and runs no test, as with --collect-only."""
    return any(getattr(config.option, name, None) for name in _SHOWING)


def find_suites(config: pytest.Config) -> list[str]:
    """Return the suites that the arguments name, or that lie up to two levels deep in folders they name."""
    suites: dict[str, None] = {}
    here = config.invocation_params.dir
    for argument in config.args:
        path = here / argument.split("::", 1)[0]
        if path.name.endswith(SUITE_SUFFIX):
            suites[os.path.relpath(path, here)] = None
        elif path.is_dir():
            for pattern in (f"*{SUITE_SUFFIX}", f"*/*{SUITE_SUFFIX}"):
                suites |= {
                    os.path.relpath(suite, here): None
                    for suite in sorted(path.glob(pattern))
                }
    return list(suites)


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
    if not is_explicit(config, "from_run"):
        return
    runs = [
        text
        for text in config.args
        if any((here / text / name).is_file() for name in _RECORDED)
    ]
    if runs:
        setattr(config.option, FURTHER_RUNS, runs)
        rest = [text for text in config.args if text not in runs]
        config.args[:] = rest or config.getini("testpaths") or [str(here)]


def check_names(config: pytest.Config) -> None:
    """Raise ``UsageError`` for a variable or ini key that is none of ours and resembles one.

    It would have no effect: with a mistyped baseline nothing is compared, and all gates stay undecided.
    Sessions without a model and without suites may have any.
    """
    ours = {flag.environment for flag in FLAGS}
    unknown = {
        name: "in the environment"
        for name, value in sorted(os.environ.items())
        if value and name.startswith(_VARIABLE) and name not in ours
    }
    unknown |= dict.fromkeys(_unknown_keys(config), "in the ini file or with -o")
    if not unknown or not (is_active(config) or find_suites(config)):
        return
    names = {flag.name: flag for flag in FLAGS}
    for name, where in unknown.items():
        if near := closest(_bare(name), names, _ALIKE):
            from pytest_kbrel.printing import printable

            flag = names[near]
            meant = flag.environment if name.startswith(_VARIABLE) else flag.ini
            raise pytest.UsageError(
                f"{printable(name)}: found {where}, and no setting has this name; allowed: the names in "
                f"pytest --help; did you mean {meant!r}?"
            )


def _unknown_keys(config: pytest.Config) -> list[str]:
    # pytest has no public list of them; before 9 it leaves those of -o out, and warns of none of those.
    unknown = {*getattr(config, "_get_unknown_ini_keys", tuple)()}
    typed = config.getoption("override_ini", None) or ()
    unknown |= {text.partition("=")[0] for text in typed}
    ours = {flag.ini for flag in FLAGS}
    return sorted(
        key
        for key in unknown
        if key.lower().startswith(("kb_", "kb-")) and key not in ours
    )


def _bare(name: str) -> str:
    return name[len(_VARIABLE) :].lower().replace("-", "_")


def _flag(name: str) -> Flag:
    return next(flag for flag in FLAGS if flag.name == name)


def text_of(config: pytest.Config, name: str) -> str:
    """Return a setting as text; raises ``UsageError`` for a file name that is too long."""
    flag = _flag(name)
    given = config.getoption(flag.ini, None)
    if given is None:
        given = (
            os.environ.get(flag.environment) or config.getini(flag.ini) or flag.default
        )
    text = str(given)
    parts = text.replace(os.pathsep, "/").encode("utf-8", "replace").split(b"/")
    if name not in _LONG and max(map(len, parts)) > _LONGEST_NAME:
        raise pytest.UsageError(
            f"{origin_of(config, name)}: found {shown(text)}; "
            f"allowed: at most {_LONGEST_NAME} bytes between slashes"
        )
    return text


def origin_of(config: pytest.Config, name: str) -> str:
    """Return where a setting was given: the flag, the environment variable or the ini key."""
    flag = _flag(name)
    if is_explicit(config, name):
        return flag.flag
    return flag.environment if os.environ.get(flag.environment) else flag.ini


def is_on(config: pytest.Config, name: str) -> bool:
    """Return True if a switch is on; raises ``UsageError`` unless the value is true or false."""
    text = text_of(config, name).lower()
    if text not in _TRUE + _FALSE:
        raise pytest.UsageError(
            f"{origin_of(config, name)}: found {text!r}; allowed: true or false"
        )
    return text in _TRUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One option: flag, ini key and environment variable are made of its name."""

    name: str
    help: str
    metavar: str | None = None
    default: str = ""
    switch: bool = False
    # The value if the flag is given without one.
    bare: str | None = None

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
        return "KB_" + self.name.upper()


FLAGS = (
    Flag(
        name="model",
        metavar="SPEC",
        help="Model to gate: a checkpoint's path or hub id, vllm/PATH to have vLLM run it, openai/NAME for "
        "one on a server, answers/FILE for answers made elsewhere (see --kb-export-requests), "
        "scripted/FILE for a script that plays one, "
        "'reference' for the embedded one, 'reference:NAME' for candidates "
        "(overconfident, gullible, int4, int3, pruned)",
    ),
    Flag(
        name="model_args",
        metavar="K=V,...",
        help="Loading options in lm-eval's words: dtype=bfloat16,...",
    ),
    Flag(
        name="device",
        metavar="DEVICE",
        default="auto",
        help="Where it runs, such as cpu or cuda:0",
    ),
    Flag(
        name="gpus_per_worker",
        metavar="N",
        help="GPUs that each worker of pytest-xdist gets for itself; -n auto starts as many workers as there "
        "are GPUs for (default: those that the model needs)",
    ),
    Flag(
        name="dtype",
        metavar="DTYPE",
        default="auto",
        help="Number type of the weights, such as bfloat16",
    ),
    Flag(
        name="batch_size",
        metavar="auto|TOKENS",
        default="auto",
        help="Tokens in one batch",
    ),
    Flag(
        name="apply_chat_template",
        switch=True,
        help="Wrap prompts in the model's chat template",
    ),
    Flag(
        name="judge",
        metavar="rules|SPEC",
        default="rules",
        help="Who decides whether an answer is right: rules, openai/NAME, or a checkpoint",
    ),
    Flag(
        name="judge_args",
        metavar="K=V,...",
        help="Options of models that judge, write distractors or embed, as for --kb-model-args: base_url=...",
    ),
    Flag(
        name="baseline",
        metavar="NAME|PATH",
        help="Blessed run to compare with, or a paper's figures: published/...",
    ),
    Flag(
        name="baseline_model",
        metavar="SPEC",
        help="Model to compare with in place of a baseline: it is asked the same prompts in this session",
    ),
    Flag(
        name="baseline_update",
        metavar="NAME",
        bare="",
        help="Bless this run under NAME (default: the name given to --kb-baseline) if it is complete",
    ),
    Flag(
        name="baseline_reason",
        metavar="TEXT",
        help="Why this run is blessed; kept with the baseline",
    ),
    Flag(
        name="from_run",
        metavar="DIR [DIR ...]",
        help="Decide again over the recorded responses of an earlier run, or of all shards of one; no model "
        "is loaded",
    ),
    Flag(
        name="plan",
        switch=True,
        help="Say in seconds about what would run (calls, tokens, time, cost, gates) and run nothing; "
        "with -v exactly, for each slice, and what each gate could find",
    ),
    Flag(
        name="export_requests",
        metavar="FILE",
        help="Write what would be asked of openai/NAME, or what answers/FILE leaves open, as the input file "
        "of a batch (JSON Lines, for OpenAI's batch service or vllm run-batch), and stop",
    ),
    Flag(
        name="prices",
        metavar="IN,OUT",
        help="With --kb-plan, or max_cost in --kb-model-args: prices of a million tokens read and written, "
        "such as 0.15,0.60",
    ),
    Flag(
        name="inconclusive",
        metavar="warn|fail",
        default="warn",
        help="What a case does that can neither pass nor fail",
    ),
    Flag(
        name="top_k",
        metavar="K",
        default="0",
        help="Record up to K (at most 64) most probable tokens at each position of answers, for kl and "
        "top1_agreement against a baseline that has them too (hf/ and vllm/ models)",
    ),
    Flag(
        name="limit",
        metavar="N|FRACTION",
        help="Sample facts of each case, deterministically by fact id",
    ),
    Flag(
        name="shard",
        metavar="I/N|auto",
        help="Ask only part I of N of the facts, dealt out by their ids, and decide nothing: kbrel merge or "
        "--kb-from-run joins the parts; auto: as the variables of SLURM arrays, Kubernetes and GitLab say",
    ),
    Flag(
        name="shard_by",
        metavar="fact|case",
        default="fact",
        help="Whether --kb-shard deals out facts or whole cases",
    ),
    Flag(
        name="until_decided",
        metavar="BUDGET",
        bare=NO_BUDGET,
        help="Ask each case in up to ten parts, and stop where all its comparisons with the baseline are "
        "decided; of all cases together at most BUDGET facts, if given",
    ),
    Flag(name="seed", metavar="N", help="Replace the seed that suites state"),
    Flag(
        name="output_path",
        metavar="DIR",
        default=DEFAULT_OUTPUT,
        help="Folder of the reports",
    ),
    Flag(
        name="junit_properties",
        switch=True,
        help="With --junitxml: write the figures of a case as its properties, which Jenkins' xUnit plugin "
        "refuses, and not as its output",
    ),
    Flag(
        name="use_cache",
        metavar="DIR|off",
        default=DEFAULT_CACHE,
        help="Folder where answers are kept, so that nothing is asked twice and a killed run goes on",
    ),
)
