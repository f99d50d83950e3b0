"""What the store of answers costs: seconds and bytes for many responses, put and found again.

    python benchmarks/store.py 100000

The responses are those of MONITOR (three to five probabilities behind a prompt) and short generated answers,
half of each, made anew. "One at a time" puts each in a transaction of its own, as a server's replies come,
"64 at a time" as batches do. "Found" looks all of them up in rounds of 2,000, checksums and records included;
"keys" is making the keys of as many requests. "For one run" is a served model under test, whose questions are
kept as well until its run ends. The store lies in the folder in which this is called.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pytest_kbrel.models.cache.journal import RunLock, begin
from pytest_kbrel.models.cache.store import FILE, Answer, Store, digest_of, key_of
from pytest_kbrel.models.scripted import Script, ScriptedModel
from pytest_kbrel.records import (
    Generated,
    GenerateRequest,
    Request,
    Scored,
    ScoreRequest,
)


class ServedModel(ScriptedModel):
    """Scripted model in place of one behind a server."""

    def __init__(self) -> None:
        super().__init__(
            Script(path=Path("none"), rules=()), spec="played", digest="0" * 64
        )
        self.served: set[str] = set()

    def about(self) -> str:
        """Return the server's entry for the model."""
        return "{}"


PLAYED = ServedModel()
MODEL = PLAYED.describe()
LOOKED_UP = 2000
Row = tuple[str, Request, Answer]


def requests(count: int) -> Iterator[Request]:
    """Yield requests of the length that MONITOR's have, about a hundred characters."""
    for n in range(count):
        prompt = f"Answer with a name.\nQuestion: what is the capital of country number {n}?\nAnswer:"
        if n % 2:
            yield ScoreRequest(prompt=prompt, continuation=f" city {n}")
        else:
            yield GenerateRequest(prompt=prompt, max_new_tokens=16)


def answers(count: int) -> list[Row]:
    """Return responses with their keys."""
    draw, who = random.Random(0), digest_of(MODEL)
    rows: list[Row] = []
    for request in requests(count):
        tokens = tuple(draw.randrange(50_000) for _ in range(draw.randint(3, 5)))
        answer: Answer
        digest = f"{draw.getrandbits(64):016x}"
        if isinstance(request, ScoreRequest):
            values = tuple(draw.random() for _ in tokens)
            answer = Scored(
                probabilities=values,
                token_ids=tokens,
                prompt_tokens=31,
                prompt_digest=digest,
            )
        else:
            answer = Generated(
                text=f"The capital is {draw.randrange(10**9)}",
                token_ids=tokens,
                finish="stop",
                prompt_tokens=31,
                prompt_digest=digest,
            )
        rows.append((key_of(who, request), request, answer))
    return rows


def put(folder: Path, rows: Sequence[Row], at_once: int) -> None:
    """Put answers into a store, ``at_once`` in each transaction."""
    store = Store(folder)
    for start in range(0, len(rows), at_once):
        store.put(rows[start : start + at_once], MODEL, digest_of(MODEL))
    store.close()


def put_by_two(folder: Path, rows: Sequence[Row]) -> None:
    """Put answers by two processes at once, half of them each."""
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=put, args=(folder, rows[share::2], 64))
        for share in (0, 1)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def put_for_one_run(folder: Path, rows: Sequence[Row]) -> None:
    """Put answers of a served model, one at a time, each with what was asked."""
    store = Store(folder)
    session = begin(store, "run", PLAYED)
    for row in rows:
        store.put([row], PLAYED.describe(), session.digest, with_requests=True)
    store.close()


def end_run(folder: Path) -> None:
    """Forget the answers of a run that has ended."""
    RunLock(folder, "run").release(ended=True)


def get(folder: Path, keys: Sequence[str]) -> None:
    """Look all answers up."""
    store = Store(folder)
    hits = sum(
        len(store.get(keys[at : at + LOOKED_UP], digest_of(MODEL)))
        for at in range(0, len(keys), LOOKED_UP)
    )
    store.close()
    assert hits == len(keys)


def seconds(action: Callable[..., object], *arguments: object) -> float:
    """Return how long a call takes, in seconds of processor time, that of its workers included."""
    started = os.times()
    action(*arguments)
    ended = os.times()
    # User, system, and the same two of the workers.
    return sum(ended[:4]) - sum(started[:4])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("count", type=int, nargs="?", default=100_000)
    count = parser.parse_args(arguments).count
    who, asked_requests, rows = digest_of(MODEL), list(requests(count)), answers(count)
    keys = [key for key, _, _ in rows]
    print(f"{count:,} responses, load {os.getloadavg()[0]:.1f}\n")
    print("| what | seconds of processor time | microseconds a response |")
    print("|---|--:|--:|")

    def say(what: str, took: float) -> None:
        print(f"| {what} | {took:.1f} | {1e6 * took / count:.0f} |", flush=True)

    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        say(
            "keys",
            seconds(lambda: [key_of(who, request) for request in asked_requests]),
        )
        say("put one at a time", seconds(put, folder / "one", rows, 1))
        say("put 64 at a time", seconds(put, folder / "many", rows, 64))
        say("found", seconds(get, folder / "many", keys))
        say(
            "put 64 at a time by 2 workers",
            seconds(put_by_two, folder / "shared", rows),
        )
        get(folder / "shared", keys)
        say(
            "put one at a time for one run",
            seconds(put_for_one_run, folder / "run", rows),
        )
        say("end that run", seconds(end_run, folder / "run"))
        size = (folder / "many" / FILE).stat().st_size
        print(f"\n{size / 1e6:.1f} MB, {size / count:.0f} bytes a response")
    return 0


if __name__ == "__main__":
    sys.exit(main())
