"""What is fuzzed: for each target the sound input, the ways to damage it, and when a pass would be wrong."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.fuzz import damage
from tests.fuzz.facts_files import Facts, facts_files
from tests.fuzz.raw_server import Reply, Said, as_json, completion, model_list
from tests.fuzz.worker import Done, Job
from tests.plugin.conftest import CAPITALS, INVENTS, RELATIONS, SCRIPTS, SUITE, script
from tests.suites import conftest as world
from tests.suites.examples import GOOD

KNOWS, WRONG = (
    ("suites", "--kb-model=scripted/knows.jsonl"),
    ("suites", "--kb-model=scripted/wrong.jsonl"),
)
ROOT = Path(__file__).parents[2]
Run = Callable[[Job], Done]
Damage = Callable[[bytes], st.SearchStrategy[bytes]]


@dataclass(frozen=True)
class Example:
    """A job with damaged input. ``never_green`` says why its session may not end with exit code 0.

    ``schema``: a suite that is taken is held against the JSON Schema of suites.
    """

    job: Job
    never_green: str = ""
    schema: bool = False


Examples = st.SearchStrategy[Example]


@dataclass(frozen=True)
class Target:
    """``sound`` gives the undamaged jobs and the exit code of each, ``examples`` damaged ones."""

    name: str
    sound: Callable[[Run], Iterable[tuple[Job, int]]]
    examples: Callable[[Run], Examples]


def _folder(files: dict[str, str | bytes]) -> dict[str, bytes]:
    both = {
        "knows.jsonl": SCRIPTS["knows"],
        "wrong.jsonl": script((), INVENTS),
        **files,
    }
    return {
        name: text.encode() if isinstance(text, str) else text
        for name, text in both.items()
    }


def _lines(rows: Iterable[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


_OWN = _lines(
    {"relation": "P36", "subject": subject, "object": city, "popularity": people}
    for subject, city, people in CAPITALS
)


def _mini(suite: str = SUITE) -> dict[str, bytes]:
    return _folder(
        {
            "suites/mini.kb.yaml": suite,
            "suites/facts.jsonl": _OWN,
            "suites/relations.yaml": RELATIONS,
        }
    )


def _with(job: Job, name: str, ways: Iterable[Damage]) -> st.SearchStrategy[Job]:
    """Return the job with one file damaged in one of some ways."""
    made = [way(job.files[name]) for way in ways]
    return st.one_of(made).map(
        lambda data: replace(job, files={**job.files, name: data})
    )


# Suite files, and the YAML files that they name.


def _suites() -> list[Job]:
    waivers = (
        "waivers: [{fact: 'P36:China', owner: A, reason: b, expires: 2090-01-01}]\n"
    )
    more = SUITE + waivers + "uninformative: rules.yaml\n"
    jobs = [
        Job(
            _mini(more)
            | {"suites/rules.yaml": b"none: ['(?i)no idea', 'who knows']\n"},
            KNOWS,
        )
    ]
    beside = {
        "suites/facts.jsonl": _lines(world.world_facts()),
        "suites/relations.yaml": world.RELATIONS,
    }
    for text in GOOD.values():
        if "openai/" not in text and "reference" not in text:
            jobs.append(Job(_folder({"suites/t.kb.yaml": text, **beside}), WRONG))
    suite = (ROOT / "suites" / "world.kb.yaml").read_text("utf-8")
    seen: dict[str, list[str]] = {}
    for line in (
        (ROOT / "suites" / "world" / "facts.jsonl")
        .read_text("utf-8")
        .splitlines(keepends=True)
    ):
        seen.setdefault(json.loads(line)["relation"], []).append(line)
    few = "".join(line for lines in seen.values() for line in lines[:30])
    relations = (ROOT / "suites" / "world" / "relations.yaml").read_bytes()
    small = re.sub(
        "limit: [0-9]+",
        "limit: 2",
        suite.replace(": 200", ": 4").replace(": 20 ", ": 4 "),
    )
    files = {"suites/world.kb.yaml": small, "suites/world/facts.jsonl": few}
    return [
        *jobs,
        Job(_folder({**files, "suites/world/relations.yaml": relations}), WRONG),
    ]


def _suite_examples(_: Run) -> Examples:
    def damaged(job: Job) -> Examples:
        names = [name for name in job.files if name.endswith(".yaml")]
        mine = next(name for name in names if name.endswith(".kb.yaml"))
        return (
            st.sampled_from([mine] * 4 + names)
            .flatmap(lambda name: _with(job, name, (damage.yaml_file, damage.raw)))
            .map(lambda result: Example(replace(result, suite=mine), schema=True))
        )

    return st.sampled_from(_suites()).flatmap(damaged)


def wrong_suite(data: bytes) -> str:
    """Return why no reader may take a suite: it is no YAML, has a key twice, or is refused by the schema."""
    import yaml

    from tests.suites.test_schema import VALIDATOR, as_json

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [
                key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)
            ]
            if len(set(keys)) < len(keys):
                raise yaml.YAMLError("a key stands twice")
            return super().construct_mapping(node, deep)

    try:
        value = yaml.load(data.decode("utf-8-sig"), Loader=Loader)
        error = next(VALIDATOR.iter_errors(as_json(value)), None)
    except (yaml.YAMLError, ValueError) as result:
        return f"the suite is no YAML: {type(result).__name__}"
    except (RecursionError, TypeError, OverflowError, AttributeError):
        return ""  # what PyYAML itself or the schema's validator cannot take says nothing of the suite
    return f"the suite's JSON Schema refuses it: {error.message[:100]}" if error else ""


# Facts files of every format.


def _facts_job(facts: Facts, args: tuple[str, ...]) -> Job:
    return Job(_folder({**facts.files, "suites/t.kb.yaml": facts.suite}), args)


def _facts_examples(_: Run) -> Examples:
    def damaged(chosen: tuple[Facts, tuple[str, ...]]) -> Examples:
        facts, args = chosen
        why = "the model knows no fact" if args == WRONG else ""
        document = damage.lines_file if facts.lines else damage.json_file
        ways = {
            ".jsonl": damage.lines_file,
            ".yaml": damage.yaml_file,
            ".json": document,
        }

        def one(name: str) -> Examples:
            special = ways.get(Path(name).suffix)
            both = (damage.raw, special) if special else (damage.raw,)
            return _with(_facts_job(facts, args), name, both).map(
                lambda job: Example(replace(job, suite="suites/t.kb.yaml"), why)
            )

        return st.sampled_from(sorted(facts.files)).flatmap(one)

    return st.tuples(
        st.sampled_from(facts_files()), st.sampled_from([KNOWS, WRONG])
    ).flatmap(damaged)


# Recorded runs.

_AGAIN = ("suites", "--kb-from-run=run")
_REPORT, _RESPONSES = "run/report.json", "run/responses.jsonl"


def _recorded(run: Run) -> list[Job]:
    """Record a run of the model that knows and one of the model that is wrong."""
    problems = []
    for args in (KNOWS, WRONG):
        done = run(Job(_mini(), (*args, "--kb-output-path=run"), keep=True))
        files = {
            name: data for name, data in done.files.items() if name.startswith("run/")
        }
        problems.append(Job({**_mini(), **files}, _AGAIN))
    return problems


def _recorded_examples(run: Run) -> Examples:
    knows, wrong = _recorded(run)

    def damaged(chosen: tuple[Job, str, bool]) -> Examples:
        job, name, renewed = chosen
        ways = (damage.raw, damage.json_file if name == _REPORT else damage.lines_file)
        why = "the recorded model is wrong" if job is wrong else ""
        return _tied(
            _with(job, name, ways),
            _REPORT,
            _RESPONSES,
            ("files", "responses.jsonl"),
            renewed,
            why,
        )

    names = st.sampled_from([_REPORT, _RESPONSES])
    return st.tuples(st.sampled_from([knows, wrong]), names, st.booleans()).flatmap(
        damaged
    )


def _tied(
    jobs: st.SearchStrategy[Job],
    meta: str,
    data: str,
    keys: tuple[str, str],
    renewed: bool,
    why: str,
) -> Examples:
    """Return examples of two files, of which ``meta`` has the other's digest under two keys.

    ``renewed`` puts the digest there again. What has another digest may not pass, whatever ``why`` says.
    """

    def finished(job: Job) -> Example:
        files = dict(job.files)
        try:
            whole = (
                lzma.decompress(files[data]) if data.endswith(".xz") else files[data]
            )
            digest = hashlib.sha256(whole).hexdigest()
            if renewed:
                meta_data = json.loads(files[meta])
                meta_data[keys[0]][keys[1]] = digest
                files[meta] = as_json(meta_data)
            other = digest.encode() not in files[meta]
        except (
            lzma.LZMAError,
            EOFError,
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
        ):
            other = True  # one of them is no longer what it was
        return Example(
            replace(job, files=files),
            why or ("a file has another digest" if other else ""),
        )

    return jobs.map(finished)


# Baselines.

_DROPS = """\
suite: mini
facts: facts.jsonl
monitor:
  negatives: 2
  gates: {accuracy_base: {max_drop: 0.1}, anchor_prob: {recovery: 0.9}}
head_to_tail: {prompt: zero-shot, gates: {accuracy: {max_drop: 0.1}}}
overall: {gates: {as_expected: {max_drop: 0.1}}}
"""


def _baselines(run: Run) -> list[Job]:
    """Bless a run of the model that knows; the candidates are itself and the model that is wrong."""
    done = run(
        Job(
            _mini(_DROPS),
            (*KNOWS, "--kb-baseline-update=old"),
            keep=True,
        )
    )
    files = {
        name: data for name, data in done.files.items() if name.startswith("baselines/")
    }
    blessed = [
        Job({**_mini(_DROPS), **files}, (*args, "--kb-baseline=old"))
        for args in (KNOWS, WRONG)
    ]
    committed = {
        f"baselines/old/{path.name}": path.read_bytes()
        for path in (ROOT / "baselines/reference").iterdir()
    }
    return [
        *blessed,
        Job({**_mini(_DROPS), **committed}, (*KNOWS, "--kb-baseline=old")),
    ]


def _baseline_examples(run: Run) -> Examples:
    knows, *others = _baselines(run)

    def damaged(chosen: tuple[Job, bool, bool]) -> Examples:
        job, outcomes, renewed = chosen
        packed = next(name for name in job.files if name.endswith(".xz"))
        meta = "baselines/old/baseline.json"
        name, special = (
            (packed, damage.packed_file) if outcomes else (meta, damage.json_file)
        )
        # What a changed baseline says is compared with; that of another suite has nothing to compare.
        why = (
            ""
            if job is knows or (outcomes and renewed)
            else "the candidate is worse, or has no baseline"
        )

        jobs = _with(job, name, (damage.raw, special))
        return _tied(
            jobs, meta, packed, ("outcomes", "sha256"), outcomes and renewed, why
        )

    jobs = [knows, knows, *others, others[0]]
    return st.tuples(st.sampled_from(jobs), st.booleans(), st.booleans()).flatmap(
        damaged
    )


# Replies of servers.

_CONTINENTS = """\
suite: mini
facts: facts.jsonl
head_to_tail: {prompt: zero-shot, bucket_by: domain, gates: {accuracy: {min: 0.5}}}
"""
_ASKED = (
    "suites",
    "--kb-model=openai/m",
    "--kb-model-args=base_url={url},timeout=1,max_retries=0",
)
_JUDGED = (
    *WRONG,
    "--kb-judge=openai/m",
    "--kb-judge-args=base_url={url},timeout=1,max_retries=0",
)
_FRAMINGS = ("length",) * 6 + ("chunked", "close", "short", "long")
_HEADERS = (
    *(
        ("content-type", "text/event-stream"),
        ("content-type", "text/html; charset=utf-7"),
        ("location", "/x"),
    ),
    *(
        ("retry-after", "1e9"),
        ("retry-after-ms", "nan"),
        ("content-encoding", "br"),
        ("content-length", "-1"),
    ),
    *(
        ("set-cookie", "a" * 70_000),
        ("x-request-id", "\x1b[31m"),
        ("content-encoding", "deflate, gzip"),
    ),
)
_STATUSES = (200,) * 8 + (
    100,
    204,
    206,
    301,
    307,
    400,
    401,
    404,
    408,
    429,
    500,
    503,
    999,
)


def _served(args: tuple[str, ...], said: Said) -> Job:
    rows = [
        {
            "relation": "P30",
            "subject": f"Land {at}",
            "object": "Africa",
            "popularity": at + 1,
        }
        for at in range(4)
    ]
    relations = "P30: {label: continent, domain: places, frames: ['Which continent is [X] on?']}\n"
    suite = {"suites/mini.kb.yaml": _CONTINENTS, "suites/facts.jsonl": _lines(rows)}
    return Job(_folder({**suite, "suites/relations.yaml": relations}), args, said)


def _rarely(one_in: int, value: Any, else_: Any) -> st.SearchStrategy[Any]:
    return st.integers(1, one_in).map(lambda drawn: value if drawn == one_in else else_)


def _replies(content: str) -> st.SearchStrategy[Reply]:
    sound = as_json(completion(content))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
    json_type = ("content-type", "application/json")
    return st.builds(
        Reply,
        status=st.sampled_from(_STATUSES),
        headers=st.lists(st.sampled_from(_HEADERS), max_size=2).map(
            lambda more: (json_type, *more)
        ),
        body=st.one_of(
            st.just(sound), *[damage.json_file(sound)] * 2, damage.raw(sound)
        ),
        framing=st.sampled_from(_FRAMINGS),
        drip=_rarely(40, True, False),
        gzip=_rarely(6, True, False),
        padding=_rarely(40, 100, 0),
        head=st.one_of(st.none(), st.none(), st.none(), damage.raw(head)),
    )


_RIGHT = {_ASKED: "Africa", _JUDGED: "correct"}
_SOUND_LIST = Reply(body=as_json(model_list("m")))


def _server_examples(_: Run) -> Examples:
    def served(chosen: tuple[tuple[str, ...], bool]) -> Examples:
        args, right = chosen
        content = _RIGHT[args] if right else "Atlantis"
        listed = (
            st.just(_SOUND_LIST)
            | st.builds(Reply, body=damage.json_file(_SOUND_LIST.body))
            | _replies("x")
        )
        replies = st.lists(_replies(content), min_size=1, max_size=4).map(tuple)
        said = st.builds(Said, models=listed, replies=replies)
        return said.map(
            lambda all_of_it: Example(
                _served(args, all_of_it), "" if right else "no reply is right"
            )
        )

    return st.tuples(st.sampled_from([_ASKED, _JUDGED]), st.booleans()).flatmap(served)


def warming() -> Job:
    """Return a sound job that loads what sessions need."""
    return _served(
        _ASKED, Said(_SOUND_LIST, (Reply(body=as_json(completion("Africa"))),))
    )


def _server_sound(_: Run) -> Iterable[tuple[Job, int]]:
    for args, right in _RIGHT.items():
        for content, code in ((right, 0), ("Atlantis", 1)):
            yield (
                _served(
                    args, Said(_SOUND_LIST, (Reply(body=as_json(completion(content))),))
                ),
                code,
            )


TARGETS = {
    target.name: target
    for target in (
        Target("suites", lambda _: [(_suites()[0], 0)], _suite_examples),
        Target(
            "facts",
            lambda _: [
                (_facts_job(one, args), code)
                for one in facts_files()
                for args, code in ((KNOWS, 0), (WRONG, 1))
            ],
            _facts_examples,
        ),
        Target(
            "recorded",
            lambda run: zip(_recorded(run), (0, 1), strict=True),
            _recorded_examples,
        ),
        Target(
            "baselines",
            lambda run: zip(_baselines(run), (0, 1, 1), strict=True),
            _baseline_examples,
        ),
        Target("server", _server_sound, _server_examples),
    )
}
