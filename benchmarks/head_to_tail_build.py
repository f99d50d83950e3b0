"""Time and memory of ``kbrel build head-to-tail`` on a synthetic dump whose popularity follows a power law.

    python benchmarks/head_to_tail_build.py 1000000 10000000 50000000
    python benchmarks/head_to_tail_build.py 1000000 --format csv
    python benchmarks/head_to_tail_build.py 1000000 --plain

Each dump is made anew in a temporary folder and removed afterwards. ``--plain`` runs the plain way beside the
command: the same rules in Python, with all rows in memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RELATIONS = (
    "born",
    "founder",
    "genre",
    "river",
    "author",
    "material",
    "league",
    "colour",
)
TEMPLATES = "".join(
    f'{name}: {{question: "Which {name} belongs to [X]?", label: {name}, domain: {domain}}}\n'
    for name, domain in zip(
        RELATIONS, ["people"] * 2 + ["works"] * 3 + ["open"] * 3, strict=True
    )
)


def main() -> None:
    """Run and print one table line a size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--memory-limit", default="4GB")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--temp-dir", type=Path, default=None)
    parser.add_argument("--run-plain", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run_plain:
        plainly(*options.run_plain)
        return
    print(
        "| rows | dump | way | seconds | peak memory | load before |\n|---|---|---|---|---|---|"
    )
    for rows in options.rows:
        with tempfile.TemporaryDirectory(dir=options.temp_dir) as folder:
            measure(Path(folder), rows, options)


def measure(folder: Path, rows: int, options: argparse.Namespace) -> None:
    """Make one dump and run over it what is to be compared."""
    dump = folder / f"dump.{options.format}"
    make_dump(dump, rows)
    (folder / "templates.yaml").write_text(TEMPLATES, encoding="utf-8")
    size = f"{options.format}, {dump.stat().st_size / 1e9:.2f} GB"
    build = [
        sys.executable,
        "-m",
        "pytest_kbrel.cli",
        "build",
        "head-to-tail",
        str(dump),
    ]
    build += [
        "--templates",
        str(folder / "templates.yaml"),
        "--output",
        str(folder / "set"),
    ]
    build += ["--memory-limit", options.memory_limit, "--temp-dir", str(folder)]
    ways = {"kbrel build": build}
    if options.plain:
        ways["plain Python"] = [
            sys.executable,
            __file__,
            "--run-plain",
            str(dump),
            str(folder / "plain.txt"),
        ]
    for name, command in ways.items():
        load = os.getloadavg()[0]
        seconds, memory = run(command)
        print(
            f"| {rows:,} | {size} | {name} | {seconds:.1f} | {memory:.2f} GB | {load:.1f} |",
            flush=True,
        )
    if options.plain:
        built = sorted(
            line.partition('"id": "')[2].partition('"')[0]
            for line in lines(folder / "set" / "facts.jsonl")
        )
        assert built == lines(folder / "plain.txt"), (
            "the two ways give different questions"
        )


def lines(path: Path) -> list[str]:
    """Return the lines of a text file."""
    return path.read_text(encoding="utf-8").splitlines()


def make_dump(path: Path, rows: int) -> None:
    """Write triples, five a subject, two of these of one relation; rank r is 1e7 / r ** 0.9 popular."""
    import duckdb

    names = ", ".join(f"'{name}'" for name in RELATIONS)
    made = "(FORMAT parquet)" if path.suffix == ".parquet" else "(FORMAT csv, HEADER)"
    with duckdb.connect(
        config={"memory_limit": "4GB", "temp_directory": str(path.parent / "spill")}
    ) as connection:
        connection.execute(f"""COPY (
            SELECT 'Entity ' || md5((i // 5)::VARCHAR)[:6] || ' no. ' || (i // 5) AS subject,
                [{names}][1 + (hash(i // 5) % 4 + least(i % 5, 3))::INTEGER] AS relation,
                'Object ' || (hash(i) % {max(rows // 50, 10)}) AS object,
                1 + (1e7 / pow(1 + i // 5, 0.9))::BIGINT AS popularity,
                1900 + (hash(i // 5, 7) % 125)::INTEGER AS year
            FROM range({rows}) AS t(i) ORDER BY hash(i, 3) % 64
        ) TO '{path}' {made}""")


def run(command: list[str]) -> tuple[float, float]:
    """Run a command; return its seconds and the peak of its resident memory in GB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return time.perf_counter() - start, usage.ru_maxrss * unit / 1e9


def plainly(dump: Path, output: Path) -> None:
    """Do the same in Python with all rows in memory; write the ids of the questions, sorted."""
    import csv
    import hashlib
    from collections import defaultdict

    from pytest_kbrel.facts.sampling import buckets

    if dump.suffix == ".csv":
        with dump.open(encoding="utf-8", newline="") as stream:
            rows = [tuple(row.values()) for row in csv.DictReader(stream)]
    else:
        import duckdb

        rows = duckdb.sql(f"SELECT * FROM read_parquet('{dump}')").fetchall()
    domains = dict(
        zip(RELATIONS, ["people"] * 2 + ["works"] * 3 + ["open"] * 3, strict=True)
    )
    entities = defaultdict(dict)
    objects = defaultdict(set)
    for subject, relation, answer, popularity, year in rows:
        if int(year) <= 2020:
            entities[domains[relation]][subject, float(popularity)] = None
            objects[relation, subject, float(popularity)].add(answer)
    bucket_of = {}
    for domain, members in entities.items():
        of = buckets([popularity for _, popularity in members])
        bucket_of.update(
            zip(((domain, *entity) for entity in members), of, strict=True)
        )
    strata = defaultdict(list)
    for (relation, subject, popularity), answers in objects.items():
        question = f"Which {relation} belongs to {subject}?".lower()
        if len(answers) == 1 and not any(
            answer.lower() in question for answer in answers
        ):
            strata[relation, bucket_of[domains[relation], subject, popularity]].append(
                subject
            )
    drawn = []
    for relation in RELATIONS:
        parts = [strata[relation, bucket] for bucket in ("head", "torso", "tail")]
        count = min(100, *map(len, parts))
        for part in parts:
            part.sort(
                key=lambda s: hashlib.md5(
                    f"0\x1f{relation}\x1f{s}".encode()
                ).hexdigest()
            )
            drawn += [f"{relation}:{subject}" for subject in part[:count]]
    output.write_text("".join(f"{name}\n" for name in sorted(drawn)), encoding="utf-8")


if __name__ == "__main__":
    main()
