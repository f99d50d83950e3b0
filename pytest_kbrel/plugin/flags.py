"""The table of all settings: name, default and help.

This module is loaded in every pytest run of every project that has the plugin installed.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_OUTPUT = "kbrel-report"
DEFAULT_CACHE = ".kbrel-cache"
# In place of the folder.
NO_CACHE = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One setting: its flag, ini key and environment variable have the same name."""

    name: str
    help: str
    metavar: str | None = None
    default: str = ""
    switch: bool = False
    # The value of a flag that is given without one.
    bare: str | None = None
    # Whether its value is, or may be, the name of a file or folder.
    names_file: bool = False

    @property
    def flag(self) -> str:
        """What is typed."""
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
        names_file=True,
        metavar="SPEC",
        help="Model to gate: a checkpoint's path or hub id, vllm/PATH to have vLLM run it, openai/NAME for "
        "one on a server, scripted/FILE for a script that plays one, "
        "'reference' for the embedded one, 'reference:NAME' for candidates "
        "(overconfident, gullible, int4, int3, pruned)",
    ),
    Flag(name="model_args", metavar="K=V,...", help="Loading options in lm-eval's words: dtype=bfloat16,..."),
    Flag(name="device", metavar="DEVICE", default="auto", help="Where it runs, such as cpu or cuda:0"),
    Flag(name="dtype", metavar="DTYPE", default="auto", help="Number type of the weights, such as bfloat16"),
    Flag(
        name="batch_size",
        metavar="auto|TOKENS",
        default="auto",
        help="Tokens in one batch",
    ),
    Flag(name="apply_chat_template", switch=True, help="Wrap prompts in the model's chat template"),
    Flag(
        name="judge",
        names_file=True,
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
        name="attribute",
        metavar="N",
        default="0",
        help="Explain the N worst facts of each MONITOR case: how much each prompt token moved the answer",
    ),
    Flag(
        name="baseline",
        names_file=True,
        metavar="NAME|PATH",
        help="Blessed run to compare with, or a paper's figures: published/...",
    ),
    Flag(
        name="baseline_update",
        names_file=True,
        metavar="NAME",
        bare="",
        help="Bless this run under NAME (default: the name given to --kb-baseline) if it is complete",
    ),
    Flag(
        name="baseline_model",
        names_file=True,
        metavar="SPEC",
        help="Model to compare with in place of a baseline: it is asked the same prompts in this session",
    ),
    Flag(name="baseline_reason", metavar="TEXT", help="Why this run is blessed; kept with the baseline"),
    Flag(
        name="noise_floor",
        switch=True,
        help="With --kb-baseline-update: ask everything twice, in other batches, and keep how much changed; "
        "no gate fails within that",
    ),
    Flag(
        name="from_run",
        names_file=True,
        metavar="DIR",
        help="Decide again over the recorded responses of an earlier run; no model is loaded",
    ),
    Flag(
        name="plan",
        switch=True,
        help="Say what would run (calls, tokens, time, cost, what each gate could find) and run nothing",
    ),
    Flag(
        name="prices",
        metavar="IN,OUT",
        help="With --kb-plan: prices of a million tokens read and written, such as 0.15,0.60",
    ),
    Flag(
        name="inconclusive",
        metavar="warn|fail",
        default="warn",
        help="What a case does that can neither pass nor fail",
    ),
    Flag(name="limit", metavar="N|FRACTION", help="Sample facts of each case, deterministically by fact id"),
    Flag(name="seed", metavar="N", help="Replace the seed that suites state"),
    Flag(
        name="output_path",
        names_file=True,
        metavar="DIR",
        default=DEFAULT_OUTPUT,
        help="Folder of the reports",
    ),
    Flag(
        name="use_cache",
        names_file=True,
        metavar="DIR|off",
        default=DEFAULT_CACHE,
        help="Folder where answers are kept, so that nothing is asked twice and a killed run goes on",
    ),
)
