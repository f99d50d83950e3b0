"""Make the files of this folder anew with the tools themselves: README.md says in which environment.

``python make.py lm_eval`` and ``python make.py inspect`` write two runs each; the second lost some rows.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROWS = 24
SAMPLES = 8
# How many of the rows that run a has right are wrong in run b.
RUNS = {"a": 0, "b": 5}
SUBJECTS = ("biology", "physics", "history")


def docs(subject: str) -> list[dict[str, Any]]:
    """Return questions, every fourth of which both runs answer wrongly."""
    return [
        {
            "number": number,
            "unit": f"{subject}-{number // 4}",
            "question": f"Which word is number {number} of {subject}?",
            "choices": [f"no{number}", f"word{number}", f"none{number}"],
            "answer": f"word{number}",
        }
        for number in range(ROWS)
    ]


def is_right(doc: dict[str, Any], lost: int) -> bool:
    """Whether a run that lost some rows has this one right."""
    number = doc["number"]
    return bool(number % 4) and number - number // 4 > lost


def task(subject: str, **more: Any) -> dict[str, Any]:
    """Return the settings of a task of multiple choice."""
    return {
        "task": f"made_{subject}",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": f"{subject}.jsonl"}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{question}}\nAnswer:",
        "metric_list": [
            {"metric": metric, "aggregation": "mean", "higher_is_better": True}
            for metric in ("acc", "acc_norm")
        ],
        **more,
    }


def matches(name: str, pattern: str) -> dict[str, Any]:
    """Return a filter of lm_eval."""
    return {
        "name": name,
        "filter": [
            {"function": "regex", "regex_pattern": pattern},
            {"function": "take_first"},
        ],
    }


def group(name: str, members: list[str]) -> dict[str, Any]:
    """Return a group of tasks, as that of MMLU is."""
    aggregated = [{"metric": "acc", "aggregation": "mean", "weight_by_size": True}]
    return {"group": name, "task": members, "aggregate_metric_list": aggregated}


TASKS = (
    *(
        task(subject, doc_to_choice="{{choices}}", doc_to_target=1)
        for subject in SUBJECTS
    ),
    group("made_science", ["made_biology", "made_physics"]),
    group("made_all", ["made_science", "made_history"]),
    task(
        "sums",
        output_type="generate_until",
        doc_to_target="{{answer}}",
        generation_kwargs={"until": ["\n\n"]},
        metric_list=[
            {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}
        ],
        filter_list=[
            matches("strict-match", r"#### (\w+)"),
            matches("flexible-extract", r"(word\d+|none\d+)"),
        ],
    ),
    task(
        "text",
        output_type="loglikelihood_rolling",
        doc_to_text="",
        doc_to_target="{{question}}",
        metric_list=[{"metric": "word_perplexity"}, {"metric": "bits_per_byte"}],
    ),
)


def make_lm_eval() -> None:
    """Run lm_eval with a model that knows its answers; no checkpoint and no network is needed."""
    import yaml
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model

    @register_model("made")
    class Made(LM):
        def __init__(self, lost: int) -> None:
            super().__init__()
            self.lost = lost

        @classmethod
        def create_from_arg_obj(
            cls, arg_dict: dict[str, Any], additional_config: Any = None
        ) -> Any:
            return cls(int(arg_dict["lost"]))

        def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
            texts = [(one.doc, one.arguments[1].strip()) for one in requests]
            return [
                (
                    -1.0
                    if (text == doc["answer"]) == is_right(doc, self.lost)
                    else -2.0,
                    False,
                )
                for doc, text in texts
            ]

        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> Any:
            ends = [
                doc["answer"] if is_right(doc, self.lost) else doc["choices"][2]
                for doc in (one.doc for one in requests)
            ]
            return [f"I count the words.\n#### {end}" for end in ends]

        def loglikelihood_rolling(
            self, requests: Any, disable_tqdm: bool = False
        ) -> Any:
            return [
                -20.0 if is_right(one.doc, self.lost) else -40.0 for one in requests
            ]

    for subject in (*SUBJECTS, "sums", "text"):
        Path(f"{subject}.jsonl").write_text(
            "".join(json.dumps(doc) + "\n" for doc in docs(subject))
        )
    for number, settings in enumerate(TASKS):
        Path(f"{number}.yaml").write_text(yaml.safe_dump(settings))
    for run, lost in RUNS.items():
        sys.argv = [
            *(
                "lm_eval",
                "run",
                "--model=made",
                "--model_args",
                f"pretrained=made/{run},lost={lost}",
                "--include_path=.",
            ),
            *(
                "--tasks",
                "made_all",
                "made_sums",
                "made_text",
                f"--output_path={run}",
                "--log_samples",
            ),
        ]
        cli_evaluate()
        shutil.rmtree(HERE / "lm_eval" / run, ignore_errors=True)
        shutil.copytree(run, HERE / "lm_eval" / run)


def make_inspect() -> None:
    """Run Inspect without asking a model, since it would download a vocabulary to count tokens."""
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score, match, mean, scorer
    from inspect_ai.solver import solver

    for run, lost in RUNS.items():

        @solver
        def answering(lost: int = lost) -> Any:
            async def solve(state: Any, _: Any) -> Any:
                doc = state.metadata
                if doc["number"] == SAMPLES - 1:
                    raise ValueError("this sample has no answer")
                good = is_right(doc, lost) or state.epoch == 2
                state.output = ModelOutput.from_content(
                    "made", doc["answer" if good else "unit"]
                )
                return state

            return solve

        @scorer(metrics={"*": [mean()]})
        def lengths() -> Any:
            async def score(state: Any, target: Any) -> Score:
                text = state.output.completion
                return Score(value={"letters": len(text), "capital": text.istitle()})

            return score

        tasks = [
            inspect_ai.Task(
                name=subject,
                dataset=[
                    Sample(
                        id=f"{subject}-{doc['number']}",
                        input=doc["question"],
                        target=doc["answer"],
                        metadata=doc,
                    )
                    for doc in docs(subject)[:SAMPLES]
                ],
                solver=answering(),
                scorer=[match(), lengths()],
                fail_on_error=False,
            )
            for subject in SUBJECTS[:2]
        ]
        made = inspect_ai.eval(
            tasks,
            model="mockllm/model",
            log_dir=run,
            display="none",
            epochs=2,
            score_display=False,
        )
        assert [log.status for log in made] == ["success"] * len(tasks)
        shutil.rmtree(HERE / "inspect" / run, ignore_errors=True)
        shutil.copytree(run, HERE / "inspect" / run)


if __name__ == "__main__":
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        {"lm_eval": make_lm_eval, "inspect": make_inspect}[sys.argv[1]]()
