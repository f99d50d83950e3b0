"""What memory a run of FKTC's size takes: 16,167 facts in 20 relations, MONITOR's 13 prompts about each.

    OMP_NUM_THREADS=1 python benchmarks/memory.py
    OMP_NUM_THREADS=1 python benchmarks/memory.py --shape one --scripted --runs recorded

Facts, frames and interfering contexts are made up, in FKTC's own format and with the sizes of its relations
(Wang et al., Table 10); ``--shape one`` puts all facts into one relation, which is one item then. The model
is a Llama of a few thousand random weights, so that what a run holds beside its model is nearly all it holds;
with ``--scripted`` it is none at all, and each answer is made of a digest of its prompt.
Each line is one command, run as a process of its own. "Peak" is the largest resident memory that the kernel
counted for a process (VmHWM): of the controller, then of each worker. "Beside" is that less the peak of the
same process of the same command on one fact of each relation (``--kb-limit 1``), which has loaded the same
model and the same libraries. Commands that load no model have no such line: all of their peak is their own.
CPU seconds are those of all processes together.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# Prompts of each relation, as Table 10 counts them: 13 a fact.
PROMPTS = {
    **{
        "P17": 12103,
        "P19": 12272,
        "P20": 12389,
        "P27": 12558,
        "P30": 12675,
        "P37": 12558,
        "P101": 9048,
    },
    **{
        "P103": 12701,
        "P108": 4979,
        "P127": 7059,
        "P159": 12571,
        "P176": 12766,
        "P178": 7696,
        "P264": 5577,
    },
    **{
        "P276": 12467,
        "P364": 11128,
        "P495": 11817,
        "P740": 12168,
        "P1376": 3042,
        "P1412": 12597,
    },
}
FRAMES, NEGATIVES = 7, 5
PROMPTS_A_FACT = 1 + FRAMES + NEGATIVES
RUNS = ("plain", "kept", "workers", "recorded", "blessed", "compared", "pairs", "off")
_CONSONANTS, _VOWELS = "bcdfghjklmnprstvwxz", "aeiou"
_PLUGIN = '''\
"""Writes down what memory its process took at most; as a program, that of another module run as one."""

import json
import os
import runpy
import sys
from pathlib import Path


def note(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    Path(os.environ["PEAKS"], name + ".json").write_text(json.dumps(peak))


def pytest_unconfigure(config):
    note(getattr(config, "workerinput", {}).get("workerid", "main"))


if __name__ == "__main__":
    del sys.argv[0]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    finally:
        note("main")
'''
SCRIPTED = '''\
"""Puts a model that answers at once into the place of a checkpoint."""

import dataclasses
import hashlib

from pytest_kbrel.models.hf import backend as hf
from pytest_kbrel.models.scripted import ScriptedModel
from pytest_kbrel.models.base import TokenCounter


def share(*texts):
    return hashlib.blake2b("|".join(texts).encode(), digest_size=4).digest()[0] / 256


class Digests:
    def text(self, prompt):
        return f"answer {share(prompt)}", ()

    def probability(self, *texts):
        return 0.1 + 0.8 * share(*texts)

    def faults(self, prompt):
        return ()


class Quick(ScriptedModel):
    def __init__(self):
        super().__init__(Digests(), spec="quick", digest=hashlib.sha256(b"quick").hexdigest())

    def describe(self):
        return dataclasses.replace(super().describe(), backend="hf")


object.__setattr__(hf.HF, "open", lambda *arguments, **options: Quick())
# What it is asked is not made by the checkpoint's tokenizer.
object.__setattr__(hf.HF, "counter", lambda spec: TokenCounter())
'''


@dataclass(frozen=True)
class Measured:
    """One command: peaks in MB by process (``main`` and workers), seconds, and what it left behind."""

    peaks: dict[str, float]
    seconds: float
    cpu: float


class Ground:
    """A folder with a suite, a model and a plugin in it, where commands are run."""

    def __init__(
        self, folder: Path, share: float, *, one: bool, scripted: bool
    ) -> None:
        self.folder = folder
        self._plugins = [
            "-p",
            "noting_peaks",
            *(["-p", "quick_model"] if scripted else []),
        ]
        (folder / "quick_model.py").write_text(SCRIPTED)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "noting_peaks.py").write_text(_PLUGIN)
        self.facts, texts = make_suite(folder / "suite", share, one)
        make_model(folder / "model", texts)

    def pytest(self, *arguments: str) -> Measured:
        """Run pytest on the suite; raises ``RuntimeError`` with the output where it ended badly."""
        plugins = (
            self._plugins if "--kb-model=./model" in arguments else self._plugins[:2]
        )
        return self.run(
            "pytest", "suite", "-q", *plugins, "-p", "no:cacheprovider", *arguments
        )

    def kbrel(self, *arguments: str) -> Measured:
        """Run the command; raises as :meth:`pytest`."""
        return self.run("noting_peaks", "pytest_kbrel.cli", *arguments)

    def run(self, module: str, *arguments: str) -> Measured:
        """Run a module as a process of its own."""
        peaks = self.folder / "peaks"
        shutil.rmtree(peaks, ignore_errors=True)
        peaks.mkdir()
        path = os.pathsep.join(
            filter(None, [str(self.folder), os.environ.get("PYTHONPATH", "")])
        )
        started = time.perf_counter()
        with (self.folder / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": path, "PEAKS": str(peaks)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError((self.folder / "output.txt").read_text())
        measured = {
            file.stem: json.loads(file.read_text()) / 1024
            for file in sorted(peaks.iterdir())
        }
        return Measured(
            peaks={
                name: measured[name]
                for name in sorted(measured, key=lambda name: (name != "main", name))
            },
            seconds=time.perf_counter() - started,
            cpu=usage.ru_utime + usage.ru_stime,
        )

    def forget(self) -> None:
        """Delete what is kept."""
        shutil.rmtree(self.folder / ".kbrel-cache", ignore_errors=True)


def make_suite(folder: Path, share: float, one: bool) -> tuple[int, list[str]]:
    """Write a suite in FKTC's format, ``share`` of its size; return the number of facts, and prompts.

    With ``one`` all facts are in one relation.
    """
    draw = random.Random(0)
    folder.mkdir()
    counts = {
        name: max(1, round(share * prompts / PROMPTS_A_FACT))
        for name, prompts in PROMPTS.items()
    }
    if one:
        counts = {"P17": sum(counts.values())}
    texts: list[str] = []
    for name, count in counts.items():
        objects = sorted(
            {words(draw, 1, 2) for _ in range(max(NEGATIVES + 1, count // 8))}
            | _spare(draw)
        )
        frames = [f"{start} {words(draw, 2, 4)} of [X]?" for start in _starts(FRAMES)]
        lines = [{"relations": frames}]
        for number in range(count):
            right, *wrong = draw.sample(objects, NEGATIVES + 1)
            subject = f"{words(draw, 1, 3)} {number}"
            lines.append({"subject": subject, "object": right, "taxonomy": wrong})
            texts.append(f"{right}. {draw.choice(frames).replace('[X]', subject)}")
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}-subclass.json").write_text(text)
    files = ", ".join(f"{name}-subclass.json" for name in counts)
    gates = "  gates:\n    accuracy: {min: 0.0, max_drop: 0.02}\n"
    (folder / "fktc.kb.yaml").write_text(
        f"suite: fktc\nfacts: [{files}]\nformat: fktc\n"
        "integrity: {empty: 1.0, answered: 0.0, repeated: 1.0, truncated: 1.0, below_random: allowed, "
        "anchor_prob: 0, first_token: 0.0}\n"
        f"monitor:\n{gates}"
    )
    return sum(counts.values()), texts


def _starts(count: int) -> Iterator[str]:
    words_ = (
        "What is the",
        "Which one is the",
        "Name the",
        "Can you tell the",
        "I want the",
        "Where is the",
        "The",
    )
    yield from words_[:count]


def _spare(draw: random.Random) -> set[str]:
    return {words(draw, 1, 2) for _ in range(4 * NEGATIVES)}


def words(draw: random.Random, least: int, most: int) -> str:
    """Return a few invented words."""

    def syllable() -> str:
        return draw.choice(_CONSONANTS) + draw.choice(_VOWELS)

    made = [
        "".join(syllable() for _ in range(draw.randint(2, 3)))
        for _ in range(draw.randint(least, most))
    ]
    return " ".join(made).title()


def make_model(folder: Path, texts: Sequence[str]) -> None:
    """Save a Llama of one narrow layer with random weights, and a tokenizer trained on ``texts``."""
    import torch
    import transformers
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
        processors,
        trainers,
    )

    transformers.utils.logging.disable_progress_bar()
    special = ["<pad>", "<s>", "</s>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(list(texts)[:5000], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.5,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


def say(what: str, run: Measured, prompts: int, least: Measured | None = None) -> None:
    """Print a line of the table."""
    peaks = ", ".join(f"{peak:.0f}" for peak in run.peaks.values())
    beside = "all"
    if least is not None:
        beside = ", ".join(
            f"{peak - least.peaks[name]:.0f}" for name, peak in run.peaks.items()
        )
    rate = f"{prompts / run.seconds:,.0f}"
    print(
        f"| {what} | {peaks} | {beside} | {run.seconds:.0f} | {run.cpu:.0f} | {rate} |",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of FKTC's size")
    parser.add_argument("--shape", choices=("fktc", "one"), default="fktc")
    parser.add_argument(
        "--scripted", action="store_true", help="no checkpoint: an answer takes no time"
    )
    parser.add_argument(
        "--runs",
        nargs="+",
        choices=RUNS,
        default=RUNS,
        metavar="RUN",
        help=", ".join(RUNS),
    )
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        ground = Ground(
            Path(name), given.share, one=given.shape == "one", scripted=given.scripted
        )
        measure(ground, given.runs)
    return 0


def measure(ground: Ground, runs: Sequence[str]) -> None:
    """Run what ``runs`` names, in the order of :data:`RUNS`; records are made when they are needed."""
    prompts, model = ground.facts * PROMPTS_A_FACT, "--kb-model=./model"
    print(
        f"{ground.facts:,} facts, {prompts:,} prompts, load {os.getloadavg()[0]:.1f}\n"
    )
    print(
        "| command | peak, MB | beside the model, MB | seconds | CPU seconds | prompts/s |"
    )
    print("|---|--:|--:|--:|--:|--:|")

    def compare_with_least(what: str, output: str, *arguments: str) -> None:
        least = ground.pytest(
            model, "--kb-limit=1", "--kb-output-path=least", *arguments
        )
        ground.forget()
        say(
            what,
            ground.pytest(model, f"--kb-output-path={output}", *arguments),
            prompts,
            least,
        )

    compare_with_least("`pytest`", "one")
    if "kept" in runs:
        least = ground.pytest(model, "--kb-limit=1", "--kb-output-path=least")
        say(
            "the same, all answers kept",
            ground.pytest(model, "--kb-output-path=kept"),
            prompts,
            least,
        )
    if "off" in runs:
        compare_with_least("`pytest --kb-use-cache=off`", "off", "--kb-use-cache=off")
    if {"workers", "pairs"} & set(runs):
        compare_with_least("`pytest -n 2`", "two", "-n2")
    record = "--kb-from-run=one"
    if "recorded" in runs:
        say("`--kb-from-run`", ground.pytest(record, "--kb-output-path=again"), prompts)
    if {"blessed", "compared"} & set(runs):
        bless = ("--kb-output-path=blessed", "--kb-baseline-update=whole")
        say(
            "`--kb-from-run --kb-baseline-update`",
            ground.pytest(record, *bless),
            prompts,
        )
    if "compared" in runs:
        compare = ("--kb-output-path=compared", "--kb-baseline=whole")
        say("`--kb-from-run --kb-baseline`", ground.pytest(record, *compare), prompts)
    if "pairs" in runs:
        say("`kbrel compare`", ground.kbrel("compare", "one", "two"), prompts)
    print()
    for path in sorted((ground.folder / "one").iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    if (store := ground.folder / ".kbrel-cache" / "answers.sqlite").exists():
        print(f"{store.name}: {store.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
