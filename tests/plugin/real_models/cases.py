"""Which checkpoints are gated how, and the verdict that a person would give on each probe."""

from pytest_kbrel.records import record
from tests.plugin.real_models.manners import RAW

PROBES = ("MONITOR", "Head-to-Tail", "Reliable KB, known", "Reliable KB, unseen")
_PASS = ("pass", "pass", "pass", "pass")
_NOT_MONITOR = ("invalid", "pass", "pass", "pass")
_NOTHING = ("invalid", "invalid", "invalid", "invalid")
_DECLINES = ("invalid", "fail", "fail", "pass")
# Random weights now and then end an answer, and are then measured; they never pass.
_NEVER = ("fail or invalid",) * 4

UNRELATED = "the right answer gets no probability behind the prompt that states it"
UNSCORED = "the model thinks before it answers, and its chat template has no form with a closed, empty thought"
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


_FRENCH = {"suite": "language: fr\n"}
_SHORT = {"args": "max_thinking_tokens=24"}
_OFF, _ON = ({"args": f"enable_thinking={is_on}"} for is_on in (False, True))
_EACH = (
    ("instruct", "llama3 gemma3", _PASS, (), {}),
    ("spaced", "llama3", _NOT_MONITOR, (UNRELATED,), {}),
    ("chatty", "qwen3", _NOT_MONITOR, (UNRELATED,), {}),
    ("french", "gemma3", _DECLINES, (), _FRENCH),
    ("french", "llama3", _DECLINES, (), {}),
    ("thinker", "qwen3", _PASS, (), {}),
    ("thinker", "qwen3", _PASS, (), _OFF),
    ("thinker", "deepseek-r1", _NOT_MONITOR, (UNSCORED,), {}),
    ("thinker", "llama3", _NOT_MONITOR, (), {}),
    ("thinker", "llama3", _NOT_MONITOR, (UNSCORED,), _ON),
    ("endless", "qwen3", _NOTHING, (_EMPTY, _CUT), _SHORT),
    ("endless", "deepseek-r1", _NOTHING, (_EMPTY, _CUT, UNSCORED), _SHORT),
    ("only-mark", "qwen3", _NOTHING, (_EMPTY,), {}),
    ("base", RAW, _PASS, (), {}),
    ("newline", RAW, _NOT_MONITOR, (UNRELATED,), {}),
    ("random", f"qwen3 {RAW}", _NEVER, (), {}),
)
CASES = tuple(
    Gated(manner=manner, shape=shape, verdicts=verdicts, says=says, **more)
    for manner, shapes, verdicts, says, more in _EACH
    for shape in shapes.split()
)


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
        "reliability[known",
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
