"""What a whole gate costs beside a whole evaluation: from the start of the process to its end.

    python -m pip install -c constraints.txt -e ".[hf]" lm_eval==0.4.13 accelerate
    OMP_NUM_THREADS=1 python benchmarks/whole_process.py --models reference ./checkpoint --facts 60

`pytest` runs the suite that ships; then `lm_eval run` is asked every distinct question of that run's
responses, as tasks of its own, with the same checkpoint in batches of 32. Both start from nothing, in turns.
The seconds are user CPU of the process and of all that it started, medians.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pytest_kbrel.reference import resolve

ROOT = Path(__file__).resolve().parent.parent
TASKS = {
    "score": "output_type: loglikelihood\ndoc_to_target: '{{continuation}}'\n"
    "metric_list: [{metric: acc}]\n",
    "generate": "output_type: generate_until\ndoc_to_target: ''\n"
    'generation_kwargs: {until: ["\\n"], max_gen_toks: 32, do_sample: false}\n'
    "metric_list: [{metric: exact_match}]\n",
}


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["reference"])
    parser.add_argument("--facts", type=int, default=60, help="facts a slice")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-k", default="monitor or head_to_tail", help="which cases")
    options = parser.parse_args()
    print(
        "| model | scored | written | kbrel, seconds | lm-eval, seconds | ratio |\n"
        "|---|--:|--:|--:|--:|--:|"
    )
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            _measure(model, options, Path(folder))


def _measure(model: str, options: argparse.Namespace, folder: Path) -> None:
    path = resolve("")[0] if model == "reference" else Path(model)
    ours = [
        *(sys.executable, "-m", "pytest", str(ROOT / "suites"), "-q"),
        *(f"--kb-model={path}", "--kb-dtype=float32", f"--kb-limit={options.facts}"),
        *("--kb-use-cache=off", f"--kb-output-path={folder}/report"),
        *("-k", options.k, "-p", "no:cacheprovider"),
    ]
    theirs = [
        *(
            sys.executable,
            "-m",
            "lm_eval",
            "run",
            "--model",
            "hf",
            "--batch_size",
            "32",
        ),
        *("--model_args", f"pretrained={path},dtype=float32", "--device", "cpu"),
        *("--include_path", str(folder / "tasks"), "--tasks"),
    ]
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    counts: dict[str, int] = {}
    for number in range(1 + options.rounds):
        # Verdicts may be red: only the time counts.
        ours_took = _seconds(ours, folder, {0, 1})
        if not number:
            counts = _tasks(folder)
            # The first turn compiles modules and reads files into memory.
            continue
        times["ours"].append(ours_took)
        names = ",".join(f"kbrel_{kind}" for kind in counts)
        times["theirs"].append(_seconds([*theirs, names], folder, {0}))
    kbrel, harness = (statistics.median(times[name]) for name in ("ours", "theirs"))
    print(
        f"| {Path(model).name} | {counts.get('score', 0):,} | {counts.get('generate', 0):,} "
        f"| {kbrel:.1f} | {harness:.1f} | {harness / kbrel:.1f} |",
        flush=True,
    )


def _tasks(folder: Path) -> dict[str, int]:
    """Write the distinct questions of the recorded run as tasks of lm-evaluation-harness."""
    questions: dict[str, dict[str, None]] = {}
    with (folder / "report" / "responses.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            request = json.loads(line)["request"]
            fields = {key: request.get(key) for key in ("prompt", "continuation")}
            questions.setdefault(request["kind"], {})[json.dumps(fields)] = None
    (folder / "tasks").mkdir()
    for kind, rows in questions.items():
        data = folder / "tasks" / f"{kind}.jsonl"
        data.write_text("\n".join(rows) + "\n", encoding="utf-8")
        (folder / "tasks" / f"{kind}.yaml").write_text(
            f"task: kbrel_{kind}\ndataset_path: json\n"
            f"dataset_kwargs: {{data_files: {{test: {data}}}}}\ntest_split: test\n"
            f"doc_to_text: '{{{{prompt}}}}'\ntarget_delimiter: ''\n{TASKS[kind]}",
            encoding="utf-8",
        )
    return {kind: len(rows) for kind, rows in questions.items()}


def _seconds(command: list[str], folder: Path, allowed: set[int]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    env = os.environ | {"HF_HOME": str(folder / "hub"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode not in allowed:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


if __name__ == "__main__":
    main()
