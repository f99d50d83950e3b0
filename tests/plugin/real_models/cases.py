"""Which checkpoints are gated how, and the verdict that a person would give on each probe."""

from pytest_kbrel.records import record
from tests.plugin.real_models.manners import RAW

PROBES = ("MONITOR", "Head-to-Tail", "Reliable KB, seen", "Reliable KB, unseen")
_PASS = ("pass", "pass", "pass", "pass")
_NOT_MONITOR = ("invalid", "pass", "pass", "pass")
_NOTHING = ("invalid", "invalid", "invalid", "invalid")
_DECLINES = ("invalid", "fail", "fail", "pass")
# Random weights now and then end an answer, and are then measured; they never pass.
_NEVER = ("fail or invalid",) * 4

_ELSE = "begin with the token that is scored"
_UNSCORED = "the model thinks before it answers, and its chat template has no form with a closed, empty thought"
_EMPTY = "answers are empty"
_CUT = "answers are cut short"


@record
class Gated:
    """A checkpoint that is gated: manner and shape name it, ``args`` and ``suite`` how.

    ``verdicts`` are a person's, one for each of :data:`PROBES`, or several that are all right; ``says`` are
    words that the errors of the run hold. ``suite`` leads the suite file.
    """

    manner: str
    shape: str
    verdicts: tuple[str, ...]
    says: tuple[str, ...] = ()
    args: str = ""
    suite: str = ""

    @property
    def name(self):
        """The checkpoint's folder."""
        return f"{self.manner}-{self.shape}"

    @property
    def id(self):
        """The name of the case, different for each."""
        return f"{self.name}-{self.args or self.suite.partition(':')[0]}".rstrip("-")

    @property
    def flags(self):
        """What is typed behind ``pytest suites``."""
        template = () if self.shape == RAW else ("--kb-apply-chat-template",)
        args = (f"--kb-model-args={self.args}",) if self.args else ()
        return (f"--kb-model=./{self.name}", *template, *args)


def _cases():
    for shape in ("qwen3", "llama3", "gemma3"):
        yield Gated(manner="instruct", shape=shape, verdicts=_PASS)
    yield Gated(manner="spaced", shape="llama3", verdicts=_NOT_MONITOR, says=(_ELSE,))
    for shape in ("qwen3", "llama3", "gemma3"):
        yield Gated(manner="chatty", shape=shape, verdicts=_NOT_MONITOR, says=(_ELSE,))
    for shape in ("qwen3", "llama3", "gemma3"):
        yield Gated(
            manner="french", shape=shape, verdicts=_DECLINES, suite="language: fr\n"
        )
    yield Gated(manner="french", shape="llama3", verdicts=_DECLINES)
    yield Gated(manner="thinker", shape="qwen3", verdicts=_PASS)
    yield Gated(
        manner="thinker", shape="qwen3", verdicts=_PASS, args="enable_thinking=False"
    )
    yield Gated(
        manner="thinker", shape="deepseek-r1", verdicts=_NOT_MONITOR, says=(_UNSCORED,)
    )
    for shape in ("llama3", "gemma3"):
        yield Gated(manner="thinker", shape=shape, verdicts=_NOT_MONITOR)
    yield Gated(
        manner="thinker",
        shape="llama3",
        verdicts=_NOT_MONITOR,
        says=(_UNSCORED,),
        args="enable_thinking=True",
    )
    short = "max_thinking_tokens=64"
    yield Gated(
        manner="endless",
        shape="qwen3",
        verdicts=_NOTHING,
        says=(_EMPTY, _CUT),
        args=short,
    )
    yield Gated(
        manner="endless",
        shape="deepseek-r1",
        verdicts=_NOTHING,
        says=(_EMPTY, _CUT, _UNSCORED),
        args=short,
    )
    yield Gated(manner="only-mark", shape="qwen3", verdicts=_NOTHING, says=(_EMPTY,))
    yield Gated(
        manner="only-mark",
        shape="deepseek-r1",
        verdicts=_NOTHING,
        says=(_EMPTY, _UNSCORED),
    )
    yield Gated(manner="base", shape=RAW, verdicts=_PASS)
    yield Gated(manner="newline", shape=RAW, verdicts=_NOT_MONITOR, says=(_ELSE,))
    for shape in ("qwen3", "llama3", "gemma3", RAW):
        yield Gated(manner="random", shape=shape, verdicts=_NEVER)
    yield Gated(manner="random", shape="deepseek-r1", verdicts=_NEVER, args=short)


CASES = tuple(_cases())


def verdicts_in(report, case):
    """Return the verdicts of a run's report, one for each of :data:`PROBES`.

    Where the slices of a probe differ, all of their verdicts stand there; where they are among several that a
    person would give, it is these.
    """
    result = {probe: set() for probe in PROBES}
    for one in report["cases"]:
        place = _probe(one["id"].rpartition("::")[2])
        if place is not None:
            result[PROBES[place]].add(one["verdict"])
    return tuple(
        right if names <= set(right.split(" or ")) else " or ".join(sorted(names))
        for right, names in zip(case.verdicts, result.values(), strict=True)
    )


def reasons_in(report):
    """Return all that a run's report says about why its cases did not pass."""
    return "\n".join(error for case in report["cases"] for error in case["errors"])


def _probe(name):
    begins = (
        "monitor[P",
        "head_to_tail[world-",
        "reliability[seen",
        "reliability[unseen",
    )
    return next(
        (place for place, begin in enumerate(begins) if name.startswith(begin)), None
    )


def metric_in(report, slices, metric):
    """Return the values of a metric in the slices whose names begin so."""
    return [
        case["metrics"][metric]["value"]
        for case in report["cases"]
        if case["id"].rpartition("::")[2].startswith(slices)
        and metric in case["metrics"]
    ]
