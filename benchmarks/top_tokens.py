"""What --kb-top-k costs: the size of a baseline, the time of a slice, and the KL divergence that K shows.

    python benchmarks/top_tokens.py size reference:int4 reference:overconfident
    python benchmarks/top_tokens.py time reference 'head_to_tail[culture-tail]' --facts 30 --pairs 60

``size`` takes the blessed outcomes of the embedded model, adds up to K tokens at each position of answers,
and packs them as a baseline; beside it stand KL divergence and top-1 agreement against candidates. ``time``
asks a slice with 64 tokens and without, in turns, and prints the quartiles of the ratios of such pairs.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_kbrel.baselines.format import (
    dump_tables,
    load_tables,
    packed,
    read_compressed,
)
from pytest_kbrel.gates.changes import agreement
from pytest_kbrel.models.base import responses_of
from pytest_kbrel.models.registry import open_model, read_spec
from pytest_kbrel.probes import chunks_of, open_case, run_case
from pytest_kbrel.records import (
    Case,
    Generated,
    GenerateRequest,
    Request,
    Response,
    Table,
    TopTokens,
)
from pytest_kbrel.store.run_store import RunStore
from pytest_kbrel.suites import load_suite

SUITE, BLESSED = Path("suites/world.kb.yaml"), Path("baselines/reference")
MOST = 64
COUNTS = (1, 2, 4, 8, 16, MOST)
Tops = dict[tuple[str, str], tuple[TopTokens, ...]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one of the two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    size = commands.add_parser("size")
    size.add_argument("candidates", nargs="*")
    timed = commands.add_parser("time")
    timed.add_argument("model")
    timed.add_argument("slice")
    timed.add_argument("--facts", type=int)
    timed.add_argument("--pairs", type=int, default=30)
    given = parser.parse_args(arguments)
    if given.command == "size":
        print_sizes(given.candidates)
    else:
        print_times(given.model, given.slice, given.facts, given.pairs)
    return 0


def print_sizes(candidates: Sequence[str]) -> None:
    """Print for each K the size of the packed outcomes, and what each candidate's divergence is."""
    (file,) = BLESSED.glob("outcomes-*.xz")
    tables = load_tables(read_compressed(file, 10**6))
    own, others = tops_of("reference"), {name: tops_of(name) for name in candidates}
    plain = len(packed(dump_tables(tables.items())))
    print(
        f"without: {plain:,} bytes, {sum(len(table.rows) for table in tables.values()):,} facts"
    )
    for count in COUNTS:
        cut = shortened(own, count)
        data = packed(
            dump_tables(
                (key, with_tops(key, table, cut)) for key, table in tables.items()
            )
        )
        told = [f"K {count}: {len(data):,} bytes, {len(data) / plain:.2f} times"]
        for name, tops in others.items():
            pairs = [
                agreement(cut[key], top) for key, top in shortened(tops, count).items()
            ]
            moved = [pair for pair in pairs if pair is not None]
            agreed = sum(pair.agreed for pair in moved) / sum(
                pair.positions for pair in moved
            )
            kl = math.fsum(pair.kl for pair in moved) / len(moved)
            told.append(f"{name} KL {kl:.4f} nats, agreement {agreed:.3f}")
        print("; ".join(told), flush=True)


def tops_of(spec: str) -> Tops:
    """Return the most probable tokens of all answers of the suite, by case and fact."""
    model, tops = open_model(read_spec(spec)), Tops()
    for case in load_suite(SUITE).cases:
        asks = [
            ask
            for chunk in chunks_of(dataclasses.replace(case, top_k=MOST))
            for ask in next(open_case(chunk))
            if isinstance(ask.request, GenerateRequest) and ask.request.top_k
        ]
        requests = [
            ask.request for ask in asks if isinstance(ask.request, GenerateRequest)
        ]
        for ask, answer in zip(asks, model.generate(requests), strict=True):
            assert isinstance(answer, Generated)
            tops[case.id, ask.fact_id] = answer.top
    model.close()
    return tops


def shortened(
    tops: Mapping[tuple[str, str], tuple[TopTokens, ...]], count: int
) -> Tops:
    """Return the first ``count`` tokens of each position."""
    return {key: tuple(tokens[:count] for tokens in top) for key, top in tops.items()}


def with_tops(key: str, table: Table, tops: Tops) -> Table:
    """Return the table of a case with the tokens of its answers."""
    case = key.rpartition("::")[2]
    rows = (
        dataclasses.replace(row, top=tops.get((case, row.fact_id), ()))
        for row in table.rows
    )
    return Table(columns=table.columns, rows=tuple(rows))


def print_times(spec: str, name: str, facts: int | None, pairs: int) -> None:
    """Print how much longer a slice takes with top tokens, from its questions to its packed outcomes."""
    model = open_model(read_spec(spec))
    without = next(
        case for case in load_suite(SUITE, limit=facts).cases if case.id == name
    )
    with_tokens = dataclasses.replace(without, top_k=MOST)

    def answer(requests: Sequence[Request], to: str) -> list[Response]:
        responses = responses_of(model, list(dict.fromkeys(requests)))
        return [responses[request] for request in requests]

    def seconds(case: Case) -> float:
        started = time.perf_counter()
        store = RunStore()
        result = run_case(case, answer, store.add)
        packed(dump_tables([(case.id, result.table)], texts=True))
        store.close()
        return time.perf_counter() - started

    seconds(without)
    seconds(with_tokens)
    ratios, plain = [], []
    for number in range(pairs):
        order = (without, with_tokens) if number % 2 else (with_tokens, without)
        took = {case.top_k: seconds(case) for case in order}
        ratios.append(took[MOST] / took[0])
        plain.append(took[0])
    low, middle, high = statistics.quantiles(ratios)
    print(
        f"{spec} {name}: {len(without.facts)} facts in {statistics.median(plain):.2f} s without; "
        f"with K {MOST} {middle:.3f} times (quartiles {low:.3f}, {high:.3f}; {pairs} pairs)"
    )


if __name__ == "__main__":
    raise SystemExit(main())
