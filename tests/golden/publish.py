"""The published baselines, made from the tables beside this module.

``python -m tests.golden.publish [FOLDER]`` writes them; without a folder, those that ship.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pytest_kbrel.metrics.reliability import average
from pytest_kbrel.records import BUCKETS
from tests.golden import figures_of, rows_of

SHIPPED = Path(__file__).parents[2] / "baselines" / "published"
MONITOR = "Wang et al., arXiv 2310.09820"
RELIABLE_KB = "Zheng et al., arXiv 2407.13578 v1"
HEAD_TO_TAIL = "Sun et al., arXiv 2308.10168 v1"

# Names of the tables' columns -> our metrics of a relation.
MONITOR_METRICS = {
    "monitor": ("monitor",),
    "anchor_prob": ("anchor_prob",),
    "acc_avg": ("accuracy", "accuracy_avg"),
    "acc_max": ("accuracy_max",),
    "acc_min": ("accuracy_min",),
    "acc_base": ("accuracy_base",),
    "acc_std": ("accuracy_std",),
    "acc_wp": ("accuracy_wp",),
    "acc_qa": ("accuracy_qa",),
    "acc_fc_pos": ("accuracy_fc_pos",),
    "acc_fc_neg": ("accuracy_fc_neg",),
    "acc_no_context": ("accuracy_base",),
    "acc_positive_context": ("accuracy_positive",),
    "acc_negative_context": ("accuracy_negative",),
    "delta_positive": ("delta_positive",),
    "delta_negative": ("delta_negative",),
}
PROBABILITIES = {"monitor", "anchor_prob"}
H2T_SCORES = {"lm": "", "em": "_em", "f1": "_f1", "rl": "_rouge_l"}
# Shares of yes and no among all questions, and not means of soft scores.
H2T_RATES = {"lm", "em"}

Figures = dict[str, dict[str, Any]]


def slug(name: str) -> str:
    """Return a model's name as a file name."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")


def figure(value: float, table: str, n: int = 0) -> dict[str, Any]:
    """Return one figure, without the noise of dividing by 100; ``n`` only for plain rates."""
    return {"value": round(value, 6), "table": table, **({"n": n} if n else {})}


def monitor() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and content of the models of the MONITOR paper.

    Our overall MONITOR is the plain mean over relations; Table 4 prints the sum of the 20 divided by 21.
    """
    facts = {row["relation"]: round(n / 13) for row, n in figures_of("monitor.csv", 10)}
    figures: dict[str, dict[str, Figures]] = {}
    # The later tables have their relations whole, so they win over Table 9's two models.
    for table in (9, 2, 3, 5, 6, 11, 4):
        for row, value in figures_of("monitor.csv", table):
            for name in MONITOR_METRICS.get(row["metric"], ()) if row["model"] else ():
                share = value if row["metric"] in PROBABILITIES else value / 100
                case = figures.setdefault(row["model"], {}).setdefault(
                    row["relation"], {}
                )
                case[name] = figure(share, str(table))
    for model, cases in figures.items():
        if "ALL20" not in cases:
            # BLOOM-7b1, of which Table 9 prints one relation.
            continue
        overall = cases.pop("ALL20")
        del overall["accuracy_avg"]
        single = [case["monitor"]["value"] for case in cases.values()]
        overall["monitor"] = figure(
            statistics.mean(single), "11 (mean of the 20 relations)"
        )
        relations = sorted(cases, key=lambda relation: int(relation[1:]))
        made = {
            f"monitor[{relation}]": {
                "questions": facts[relation],
                "figures": cases[relation],
            }
            for relation in relations
        }
        members = [f"monitor[{relation}]" for relation in relations]
        questions = sum(facts[relation] for relation in relations)
        made["monitor[overall]"] = {
            "questions": questions,
            "members": members,
            "figures": overall,
        }
        yield f"monitor/{slug(model)}", content(MONITOR, model, made)


def reliable_kb() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and content of each model and prompt setting of the Reliable KB paper."""
    asked = 3000
    columns = {
        "cr": "9",
        "wr": "9",
        "ncr": "9",
        "c_correct": "10",
        "ccr": "11",
        "cwr": "11",
        "nccr": "11",
    }
    for row in rows_of("reliable_kb.csv"):

        def of(name: str, table: str, n: int = 0, row: dict[str, str] = row) -> Figures:
            return {name: figure(float(row[name]) / 100, table, n)} if row[name] else {}

        def counted(name: str, column: str, row: dict[str, str] = row) -> Figures:
            return {name: figure(int(row[column]) / asked, "9", asked)}

        def c_wrong(column: str, row: dict[str, str] = row) -> Figures:
            return (
                {"c_wrong": figure(float(row[column]) / 100, "10")}
                if row[column]
                else {}
            )

        seen: Figures = {}
        for name, table in columns.items():
            seen |= of(name, table, asked if name in ("cr", "wr") else 0)
        seen |= counted("uninformative", "n_uninformative_seen") | c_wrong(
            "c_wrong_seen"
        )
        unseen = of("ur", "9", asked) | counted("wr", "n_wrong_unseen")
        unseen |= c_wrong("c_wrong_unseen") | of("iur", "11")
        overall = (
            of("ncr", "9")
            | of("ur", "9", asked)
            | of("nccr", "11")
            | of("iur", "11")
            | of("c_wrong", "10")
        )
        pair = [np.array(float(row[name]) / 100) for name in ("nccr", "iur")]
        overall["avg"] = figure(float(average(*pair)), "1 (its AVG, of Table 11)")
        names = [
            f"reliability[{kind}-{row['setting']}]" for kind in ("known", "unseen")
        ]
        cases: dict[str, Any] = {
            names[0]: {"questions": asked, "figures": seen},
            names[1]: {"questions": asked, "figures": unseen},
            "reliability[overall]": {
                "questions": 2 * asked,
                "members": names,
                "figures": overall,
            },
        }
        model = f"{row['model']} {row['params']}".strip()
        path = f"reliable-kb/{slug(model)}/{row['setting']}"
        yield path, content(RELIABLE_KB, model, cases, setting=row["setting"])


def head_to_tail() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and content of the models of the Head-to-Tail paper, in its few-shot setting.

    Accuracy and hallucination are those its judging model gives. The paper prints no missing rate by domain:
    it is what the two leave. A domain over all buckets and a bucket over all domains are cases too, which no
    suite has: with them all of Table 11 is here.
    """
    asked = {
        row["domain"]: int(n)
        for row, n in figures_of("head_to_tail.csv", 2)
        if row["metric"] == "n_questions"
    }
    printed: dict[str, dict[tuple[str, str], dict[str, float]]] = {}
    tenth: dict[str, dict[str, Figures]] = {}
    for row, value in figures_of("head_to_tail.csv", 11):
        place = printed.setdefault(row["model"], {}).setdefault(
            (row["domain"], row["bucket"]), {}
        )
        place[row["metric"]] = value / 100
    for row, value in figures_of("head_to_tail.csv", 5):
        if row["domain"] in asked:
            name = {"a_lm": "accuracy", "h_lm": "hallucination", "m": "missing"}[
                row["metric"]
            ]
            case = tenth.setdefault(row["model"], {}).setdefault(row["domain"], {})
            case[name] = figure(value / 100, "5")
    for model, places in printed.items():
        single = [place for place in places if "all" not in place]
        cases: dict[str, Any] = {}
        for domain, bucket in single:
            n = asked[domain] // 3
            figures = by_judge(places[domain, bucket], n)
            cases[f"head_to_tail[{domain}-{bucket}]"] = {
                "questions": n,
                "figures": figures,
            }
        members = list(cases)
        for domain in dict.fromkeys(domain for domain, _ in single):
            cases[f"head_to_tail[{domain}]"] = {
                "questions": asked[domain],
                "members": [f"head_to_tail[{domain}-{bucket}]" for bucket in BUCKETS],
                "figures": by_judge(places[domain, "all"], asked[domain]),
            }
        for bucket in BUCKETS:
            n = asked["all"] // 3
            cases[f"head_to_tail[{bucket}]"] = {
                "questions": n,
                "members": [
                    member for member in members if member.endswith(f"-{bucket}]")
                ],
                "figures": by_all_scores(places["all", bucket], n),
            }
        top = tenth.get(model, {})
        everywhere = top.pop("all", {})
        for domain, figures in top.items():
            cases[f"head_to_tail[{domain}-top10]"] = {"figures": figures}
        overall = by_all_scores(places["all", "all"], asked["all"])
        for bucket in BUCKETS:
            overall[f"accuracy_{bucket}"] = figure(
                places["all", bucket]["a_lm"], "11", asked["all"] // 3
            )
        if everywhere:
            overall["accuracy_top10"] = everywhere["accuracy"]
        gap = places["all", "head"]["a_lm"] - places["all", "tail"]["a_lm"]
        overall["gap"] = figure(gap, "11")
        case = {"questions": asked["all"], "members": members, "figures": overall}
        cases["head_to_tail[overall]"] = case
        yield (
            f"head-to-tail/{slug(model)}",
            content(HEAD_TO_TAIL, model, cases, setting="few-shot"),
        )


def by_judge(of: dict[str, float], n: int) -> Figures:
    """Return a domain's figures, as its paper's judging model gives them."""
    missing = max(0.0, 1 - of["a_lm"] - of["h_lm"])
    rates = {"accuracy": of["a_lm"], "hallucination": of["h_lm"], "missing": missing}
    return {name: figure(value, "11", n) for name, value in rates.items()}


def by_all_scores(of: dict[str, float], n: int) -> Figures:
    """Return the figures over all domains, by judge, exact match, token F1 and ROUGE-L."""
    result: Figures = {"missing": figure(of["m"], "11", n)}
    for score, ending in H2T_SCORES.items():
        rate = n if score in H2T_RATES else 0
        result[f"accuracy{ending}"] = figure(of[f"a_{score}"], "11", rate)
        result[f"hallucination{ending}"] = figure(of[f"h_{score}"], "11", rate)
    return result


def content(
    paper: str, model: str, cases: dict[str, Any], setting: str = ""
) -> dict[str, Any]:
    """Return what a file says."""
    return {
        "schema_version": 1,
        "paper": paper,
        "model": model,
        **({"setting": setting} if setting else {}),
        "cases": cases,
    }


def files() -> dict[str, str]:
    """Return all files: path below the folder, and text."""
    made = (*monitor(), *reliable_kb(), *head_to_tail())
    return {f"{path}.json": text_of(result) for path, result in made}


def text_of(result: dict[str, Any]) -> str:
    """Return the text of a file: one figure a line."""
    text = json.dumps(result, indent=1, ensure_ascii=False)
    return (
        re.sub(
            r"\{\s+(\"value\"[^}]*?)\s+\}",
            lambda m: "{" + " ".join(m[1].split()) + "}",
            text,
        )
        + "\n"
    )


def main(folder: Path = SHIPPED) -> None:
    """Write all files into ``folder`` in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    for path, text in files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
