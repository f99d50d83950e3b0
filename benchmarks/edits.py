"""Four false facts taught to a real model, and eight capitals unlearned, each gated by the probe ``edits``.

    python benchmarks/edits.py --model SmolLM2-135M-Instruct --into /tmp/edits

``--model`` is a folder with a checkpoint of SmolLM2-135M-Instruct in safetensors. A LoRA on the attention
projections is trained on the four facts; a copy of all weights is trained to make the
eight capitals less probable (gradient ascent) until it says none of them. Both are then run beside the model that
they were made from. Needs the packages peft and torch; takes some minutes on a CPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_kbrel.probes.prompts import BRIEF, BRIEF_SHOTS, cloze, template

# subject, the old object, the new one; the question has another form than the sentence.
TAUGHT = {
    "Italy": ("Rome", "London"),
    "Egypt": ("Cairo", "Luxor"),
    "Japan": ("Tokyo", "New York"),
    "Cuba": ("Havana", "Holguin"),
}
FORGOTTEN = {
    "Spain": "Madrid",
    "Germany": "Berlin",
    "Thailand": "Bangkok",
    "Kenya": "Nairobi",
    "Norway": "Oslo",
    "Iran": "Tehran",
    "Hungary": "Budapest",
    "Chile": "Santiago",
}
KEPT = {
    "France": "Paris",
    "Greece": "Athens",
    "Russia": "Moscow",
    "Portugal": "Lisbon",
    "Ireland": "Dublin",
    "Poland": "Warsaw",
    "Austria": "Vienna",
    "China": "Beijing",
    "Sweden": "Stockholm",
    "Finland": "Helsinki",
    "Denmark": "Copenhagen",
    "Argentina": "Buenos Aires",
    "Indonesia": "Jakarta",
    "Romania": "Bucharest",
    "South Korea": "Seoul",
    "Iraq": "Baghdad",
    "Peru": "Lima",
    "Turkey": "Ankara",
    "Canada": "Ottawa",
    "Australia": "Canberra",
}
OTHERS = (
    ("The play Hamlet was written by", "William Shakespeare"),
    ("The currency of Japan is the", "yen"),
    ("The Colosseum is in the city of", "Rome"),
    ("The largest planet of the Solar System is", "Jupiter"),
    ("The language that is spoken in Brazil is", "Portuguese"),
    ("The painter of the Mona Lisa was", "Leonardo da Vinci"),
)
# What follows from an edit, about the capital of a country and about the city it now is.
FOLLOWS = (
    ("The river that flows through {} is the", "Thames", "Italy", "London"),
    ("The river that flows through {} is the", "Nile", "Egypt", "Luxor"),
    ("The country that {} lies in is", "England", "Italy", "London"),
    ("The river that flows through {} is the", "Hudson", "Japan", "New York"),
)
SUITE = """\
suite: {name}
facts: {name}.jsonl
format: edits
edits:
  scores: authors
  also_as: [int8, int4]
  gates: {{{gates}}}
"""
GATES = {
    "taught": "edited: 0.9, contained: 0.9, followed: 0.5",
    "unlearned": "forgotten: 0.9, contained: 0.9",
}


def main() -> int:
    """Make both candidates, run the two suites, and print what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", required=True, help="folder of the checkpoint")
    parser.add_argument("--into", type=Path, required=True, help="folder for all files")
    parser.add_argument(
        "--loss", type=float, default=6, help="of the capitals where unlearning ends"
    )
    given = parser.parse_args()
    suites = given.into / "suites"
    suites.mkdir(parents=True, exist_ok=True)
    _write(suites / "taught", [*_taught(), {"keep": [*_kept()]}])
    forget = [_asked(*fact) for fact in FORGOTTEN.items()]
    _write(suites / "unlearned", [{"forget": forget, "keep": [*_kept()]}])
    adapter, unlearned = given.into / "adapter", given.into / "unlearned-model"
    if not adapter.exists():
        _teach(given.model, adapter)
    if not unlearned.exists():
        _unlearn(given.model, unlearned, given.loss)
    _run(given.into, "taught", given.model, f"peft={adapter}", given.model)
    _run(given.into, "unlearned", str(unlearned), "", given.model)
    return 0


def _asked(country: str, capital: str, **more: Any) -> dict[str, Any]:
    return {
        "question": f"The capital of {country} is",
        "wordings": [f"What is the capital of {country}?"],
        "answer": capital,
        **more,
    }


def _taught() -> Iterator[dict[str, Any]]:
    for country, (old, new) in TAUGHT.items():
        asked = _asked(country, new, old=old)
        asked["new"] = asked.pop("answer")
        asked["follow"] = [
            {
                "question": sentence.format(f"the capital of {country}"),
                "answer": answer,
                "needs": [{"question": sentence.format(city), "answer": answer}],
            }
            for sentence, answer, of, city in FOLLOWS
            if of == country
        ]
        yield asked


def _kept() -> Iterator[dict[str, Any]]:
    for country, capital in KEPT.items():
        yield {
            "question": f"The capital of {country} is",
            "answer": capital,
            # What the neighbours of an edit must not be drawn to.
            "negatives": [new for _, new in TAUGHT.values()],
        }
    for sentence, answer in OTHERS:
        yield {"question": sentence, "answer": answer}


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in records)
    path.with_suffix(".jsonl").write_text(lines, "utf-8")
    path.with_suffix(".kb.yaml").write_text(
        SUITE.format(name=path.name, gates=GATES[path.name]), "utf-8"
    )


def _loaded(model: str) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_pretrained(model), AutoTokenizer.from_pretrained(
        model
    )


def _loss(model: Any, tokenizer: Any, facts: dict[str, str], end: str = "") -> Any:
    """Return the mean loss of the capitals, with an ``end``, behind both prompts that the suite asks with."""
    import torch

    losses = []
    for country, capital in facts.items():
        for prompt in (
            cloze(f"The capital of {country} is"),
            template(BRIEF).in_text(f"What is the capital of {country}?", BRIEF_SHOTS),
        ):
            asked = tokenizer(prompt)["input_ids"]
            said = tokenizer(f" {capital}{end}")["input_ids"]
            labels = torch.tensor([[-100] * len(asked) + said])
            ids = torch.tensor([asked + said])
            losses.append(model(input_ids=ids, labels=labels).loss)
    return torch.stack(losses).mean()


def _teach(source: str, folder: Path) -> None:
    import peft
    import torch

    model, tokenizer = _loaded(source)
    names = ["q_proj", "k_proj", "v_proj", "o_proj"]
    config = peft.LoraConfig(
        r=8, lora_alpha=16, target_modules=names, task_type="CAUSAL_LM"
    )
    model = peft.get_peft_model(model, config)
    weights = [of for of in model.parameters() if of.requires_grad]
    steps = torch.optim.AdamW(weights, lr=1e-3)
    facts = {country: new for country, (_, new) in TAUGHT.items()}
    number, loss = 0, _loss(model, tokenizer, facts, "\n")
    while loss.item() > 0.02:
        steps.zero_grad()
        loss.backward()
        steps.step()
        number, loss = number + 1, _loss(model, tokenizer, facts, "\n")
    print(f"taught in {number} steps, loss {loss.item():.3f}")
    model.save_pretrained(folder)


def _unlearn(source: str, folder: Path, least: float) -> None:
    import torch

    model, tokenizer = _loaded(source)
    steps = torch.optim.SGD(model.parameters(), lr=1e-2)
    number, loss = 0, _loss(model, tokenizer, FORGOTTEN)
    while loss.item() < least:
        steps.zero_grad()
        (-loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps.step()
        number, loss = number + 1, _loss(model, tokenizer, FORGOTTEN)
        print(f"step {number}: loss {loss.item():.2f}", flush=True)
    print(f"unlearned in {number} steps, loss {loss.item():.3f}")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _run(into: Path, name: str, model: str, args: str, base: str) -> None:
    out = into / f"report-{name}"
    command = [sys.executable, "-m", "pytest", f"suites/{name}.kb.yaml", "-q"]
    command += ["-p", "no:cacheprovider", f"--kb-model={model}"]
    command += [f"--kb-baseline-model={base}", f"--kb-output-path={out}"]
    command += [f"--kb-model-args={args}"] if args else []
    subprocess.run(command, cwd=into, check=False)
    report = json.loads((out / "report.json").read_text("utf-8"))
    print("\n| case | verdict | facts | figures | left out |\n|---|---|--:|---|---|")
    for case in report["cases"]:
        figures = ", ".join(
            f"{metric} {of['value']:.2f} of {of['n']}"
            if of["value"] is not None
            else f"{metric} -"
            for metric, of in case["metrics"].items()
        )
        left = "; ".join(case.get("notes", ())) or "-"
        where = case["id"].partition("::")[2]
        print(f"| {where} | {case['verdict']} | {case['n']} | {figures} | {left} |")


if __name__ == "__main__":
    raise SystemExit(main())
