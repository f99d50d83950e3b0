"""The shell steps of the action and of the workflows, run as scripts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest
import yaml

from tests.ci.conftest import ROOT

MARKER = "<!-- pytest-kbrel: kbrel -->"
KNOWS, LOST = "scripted/knows.jsonl", "scripted/lost.jsonl"


@pytest.fixture
def pull_request(tmp_path, run):
    """Return functions that post a text on a pull request, and that return its comments and the calls."""
    folder = tmp_path / "gh"
    folder.mkdir()
    state = {"head": "a" * 40, "comments": []}

    class PullRequest:
        def set(self, *comments):
            (folder / "state.json").write_text(
                json.dumps(state | {"comments": comments})
            )

        def post(self, text, commit="a" * 40, name="kbrel"):
            body = tmp_path / "comment.md"
            body.write_text(text, encoding="utf-8")
            return self.post_file(body, commit, name)

        def post_file(self, body, commit="a" * 40, name="kbrel"):
            return run(
                "post-comment.sh",
                **{"FAKE_GH": folder, "GH_TOKEN": "token", "GITHUB_REPOSITORY": "o/r"},
                **{"KBREL_BODY": body, "KBREL_PULL_REQUEST": 7, "KBREL_COMMIT": commit},
                KBREL_NAME=name,
            )

        def bodies(self):
            return [
                of["body"]
                for of in json.loads((folder / "state.json").read_text())["comments"]
            ]

        def methods(self):
            calls = [
                json.loads(line)
                for line in (folder / "calls.jsonl").read_text().splitlines()
            ]
            (folder / "calls.jsonl").unlink()
            return [
                call[call.index("--method") + 1] for call in calls if "--method" in call
            ]

    result = PullRequest()
    result.set()
    return result


def comment(at, body, kind="Bot"):
    return {"id": at, "user": {"type": kind}, "body": body}


def test_the_first_run_writes_a_comment_and_the_next_ones_replace_it(pull_request):
    assert pull_request.post(f"{MARKER}\none\n").returncode == 0
    assert pull_request.methods() == ["POST"]
    assert pull_request.post(f"{MARKER}\ntwo\n").returncode == 0
    assert pull_request.methods() == ["PATCH"]
    assert pull_request.bodies() == [f"{MARKER}\ntwo\n"]


def test_comments_of_others_are_left_alone_and_doubled_ones_are_removed(pull_request):
    others = [
        comment(1, f"{MARKER}\nof a person", "User"),
        comment(2, "<!-- pytest-kbrel: other -->\nof another gate"),
        comment(3, f"quoted:\n{MARKER}\n"),
    ]
    pull_request.set(
        *others, comment(4, f"{MARKER}\r\nold"), comment(5, f"{MARKER}\nolder")
    )
    assert pull_request.post(f"{MARKER}\nnew\n").returncode == 0
    assert pull_request.methods() == ["PATCH", "DELETE"]
    assert pull_request.bodies() == [*(of["body"] for of in others), f"{MARKER}\nnew\n"]


def test_a_run_of_an_older_commit_posts_nothing(pull_request):
    result = pull_request.post(f"{MARKER}\nold\n", commit="b" * 40)
    assert result.returncode == 0
    assert "not posted: the pull request is at aaaaaaaaaaaa" in result.stdout
    assert pull_request.methods() == []


def test_a_job_that_ended_early_replaces_the_verdict_of_the_run_before(pull_request):
    pull_request.set(comment(1, "<!-- pytest-kbrel -->\n## Knowledge gates: pass"))
    assert pull_request.post("", name="").returncode == 0
    (body,) = pull_request.bodies()
    assert body.startswith("<!-- pytest-kbrel -->\n## Knowledge gates: no report\n")


@pytest.mark.parametrize(
    "line",
    ["hello", "<!-- pytest-kbrel: other -->", f"{MARKER} x", "<!-- pytest-kbrel -->"],
)
def test_a_file_without_the_marker_of_its_gate_is_not_posted(pull_request, line):
    result = pull_request.post(f"{line}\nhello\n")
    assert result.returncode == 2
    assert f"found no marker '{MARKER}' in its first line" in result.stderr
    assert pull_request.bodies() == []


@pytest.mark.parametrize("text", [f"{MARKER}\nsecret\n", None])
def test_a_link_is_not_posted(pull_request, tmp_path, text):
    if text is not None:
        (tmp_path / "secret").write_text(text)
    (tmp_path / "body").symlink_to("secret")
    result = pull_request.post_file(tmp_path / "body")
    assert result.returncode == 2
    assert "body: is a symbolic link; allowed: a file" in result.stderr
    assert pull_request.bodies() == []


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("KBREL_NAME", "a --> <b>"),
        ("KBREL_NAME", "a\nb"),
        ("KBREL_LINK", "javascript:alert(1)"),
        ("KBREL_LINK", "https://x/1) [other](https://y"),
        ("KBREL_COMMIT", "main"),
    ],
)
@pytest.mark.parametrize("script", ["comment.sh", "post-comment.sh"])
def test_a_comment_without_a_report_states_only_what_one_may(
    run, tmp_path, script, variable, text
):
    stated = {"KBREL_BODY": tmp_path / "body", variable: text}
    result = run(script, **stated)
    assert result.returncode == 4
    assert f"{variable}: found '{text}'; allowed: " in result.stderr
    assert result.stdout == ""


@pytest.mark.skipif(shutil.which("jq") is None, reason="there is no jq")
def test_the_filter_of_the_comments_is_one_that_jq_reads():
    text = (ROOT / ".github/scripts/post-comment.sh").read_text(encoding="utf-8")
    (expression,) = re.findall(r"--jq '([^']+)'", text)
    comments = [comment(1, f"{MARKER}\r\nx"), comment(2, "y", "User"), comment(3, "z")]
    result = subprocess.run(
        ["jq", "-r", expression],
        input=json.dumps(comments),
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == f"1\t{MARKER}\n3\tz\n"


def test_the_key_of_the_cache_changes_with_model_and_suites(run, project):
    def key(**more):
        result = run("cache-key.sh", KBREL_MODEL="a", **more)
        assert result.returncode == 0
        return dict(line.split("=") for line in result.stdout.splitlines())

    first = key()
    assert first == key()
    assert re.fullmatch("[0-9a-f]{16}", first["model"])
    other = key(KBREL_MODEL_ARGS="revision=x")
    assert (other["model"] != first["model"], other["suites"]) == (
        True,
        first["suites"],
    )
    (project / "suites/facts.jsonl").write_text("{}\n")
    assert (key()["model"], key()["suites"] != first["suites"]) == (
        first["model"],
        True,
    )
    assert run("cache-key.sh", KBREL_SUITES="nowhere").returncode != 0
    # Neither an action of find nor an option of it.
    for name in ("-delete", "-L", "--help"):
        assert run("cache-key.sh", KBREL_SUITES=f"{name}\nsuites").returncode != 0
        (project / name).write_text("x")
        assert key(KBREL_SUITES=f"{name}\nsuites")["suites"] != key()["suites"]
        assert (project / "suites/facts.jsonl").exists()


def test_what_is_installed(run, tmp_path):
    tools = tmp_path / "fake"
    tools.mkdir()
    (tools / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tools / "python").chmod(0o755)

    def installed(**more):
        result = run("install.sh", **more, PATH=f"{tools}:/usr/bin:/bin")
        assert result.returncode == 0, result.stderr
        return result.stdout.splitlines()[4:]

    assert installed(KBREL_INSTALL="none") == []
    assert installed(KBREL_SOURCE="/a b", KBREL_EXTRAS="hf,openai") == [
        "/a b[hf,openai]"
    ]
    assert installed(KBREL_SOURCE="/a", KBREL_EXTRAS="") == ["/a"]
    assert installed(KBREL_INSTALL="-c\nx.txt\n\npytest-kbrel[hf]\n") == [
        "-c",
        "x.txt",
        "pytest-kbrel[hf]",
    ]


@pytest.mark.parametrize("both", [{}, {"KBREL_MODEL": "a", "KBREL_FROM_RUN": "b"}])
def test_a_gate_needs_a_model_or_recorded_shards(run, both):
    result = run("gate.sh", **both)
    assert result.returncode == 4
    assert "found both or none; allowed: one of the two" in result.stderr


def test_a_gate_that_measured_nothing_fails(run, project):
    result = run("gate.sh", KBREL_MODEL=KNOWS, KBREL_ARGS="--collect-only\n-q")
    assert result.returncode == 5
    assert "kbrel-report/report.json: is not there although" in result.stderr


def test_a_run_without_a_report_says_so(run):
    assert run("summary.sh").stdout.startswith("## Knowledge gates: no report\n")
    result = run("comment.sh", KBREL_NAME="kbrel", KBREL_COMMIT="a" * 40)
    assert result.stdout.split("\n")[:2] == [MARKER, "## Knowledge gates: no report"]


def test_a_comment_needs_python_only_and_no_kbrel_in_the_path(run, project, tmp_path):
    (project / "kbrel-report").mkdir()
    (project / "kbrel-report/report.json").write_text("{}")
    tools = tmp_path / "fake"
    tools.mkdir()
    (tools / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@" >&2\n')
    (tools / "python").chmod(0o755)
    result = run("comment.sh", KBREL_NAME="kbrel", PATH=f"{tools}:/usr/bin:/bin")
    assert result.returncode == 0
    given = ["--name=kbrel", "--link=", "--commit=", "--", "kbrel-report"]
    arguments = ["-m", "pytest_kbrel.cli", "comment", *given]
    assert result.stderr.splitlines() == arguments


@pytest.mark.slow
def test_shards_are_joined_decided_and_commented_on(run, project, blessed):
    for shard in ("1", "2"):
        output = f"kbrel-shards/kbrel-shard-{shard}"
        part = {
            "KBREL_SHARD": f"{shard}/2",
            "KBREL_OUTPUT": output,
            "KBREL_BASELINE": "prod",
        }
        result = run("gate.sh", KBREL_MODEL=LOST, **part)
        assert result.returncode == 0, result.stdout
        assert (project / output / "junit.xml").is_file()
    decided = run("gate.sh", KBREL_FROM_RUN="kbrel-shards", KBREL_BASELINE="prod")
    assert decided.returncode == 1, decided.stdout
    junit = ElementTree.parse(project / "kbrel-report/junit.xml")
    assert len(list(junit.iter("failure"))) == 2
    # The run has appended its summary itself.
    assert run("summary.sh").stdout == ""
    text = run(
        "comment.sh", KBREL_NAME="kbrel", KBREL_LINK="https://ci.example/1"
    ).stdout
    lines = text.split("\n")
    assert lines[:2] == [MARKER, "## Knowledge gates: fail"]
    assert "against baseline **prod** (blessed on the same day, " in text
    assert "<summary>7 facts lost</summary>" in text
    # One shard is missing: no verdict, and a comment that says so.
    shutil.rmtree(project / "kbrel-shards/kbrel-shard-2")
    shutil.rmtree(project / "kbrel-report")
    missing = run("gate.sh", KBREL_FROM_RUN="kbrel-shards", KBREL_BASELINE="prod")
    assert missing.returncode == 4
    assert "no report" in run("comment.sh").stdout


@pytest.mark.slow
def test_the_steps_of_the_action_in_their_order(project, environment, tmp_path):
    """Run each shell step with the variables that the action gives it, as a runner does."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    inputs = {name: of["default"] for name, of in action["inputs"].items()}
    inputs |= {
        "model": KNOWS,
        "install": "none",
        "name": "kbrel",
        "args": "--kb-baseline-update=prod\n-q",
    }
    github = {
        **{
            "action_path": str(ROOT),
            "repository": "o/r",
            "run_id": "1",
            "server_url": "https://ci.example",
        },
        "event.pull_request.head.sha || github.sha": "a" * 40,
    }
    values = {f"inputs.{name}": value for name, value in inputs.items()}
    values |= {f"github.{name}": value for name, value in github.items()}
    files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    status = {}
    for step in action["runs"]["steps"]:
        if "run" not in step or step["name"] == "Post the comment":
            continue
        variables = {
            name: re.sub(r"\${{ (.*?) }}", lambda match: values[match[1]], str(value))
            for name, value in step["env"].items()
        }
        variables |= {name: str(path) for name, path in files.items()} | {
            "GITHUB_ACTION_PATH": str(ROOT)
        }
        status[step["name"]] = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=project,
            env=environment | variables,
            capture_output=True,
            text=True,
        ).returncode
    assert status == dict.fromkeys(
        ["Install", "Key of the cache", "Gate", "Summary", "Comment"], 0
    )
    assert re.fullmatch(
        r"model=\w{16}\nsuites=\w{16}\n", files["GITHUB_OUTPUT"].read_text()
    )
    page = files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
    assert (
        page.strip()
        == (project / "kbrel-report/summary.md").read_text(encoding="utf-8").strip()
    )
    written = (project / "kbrel-report/comment.md").read_text(encoding="utf-8")
    assert written.startswith(f"{MARKER}\n## Knowledge gates: ")
    assert "Commit `aaaaaaaaaaaa`." in written
    assert "[the run](https://ci.example/o/r/actions/runs/1)" in written
    assert (project / "kbrel-report/junit.xml").is_file()
    assert (project / "baselines/prod/baseline.json").is_file()


@pytest.mark.slow
def test_blessing_accepts_what_fails_and_commits_only_the_baseline(
    run, project, blessed, tmp_path
):
    origin = tmp_path / "origin.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(origin))
    git(project, "init", "-q", "-b", "topic")
    git(project, "add", "suites", "baselines", "pytest.ini")
    git(project, "commit", "-qm", "first")
    git(project, "push", "-q", str(origin), "HEAD:refs/heads/topic")
    shards = {
        "KBREL_MODEL": LOST,
        "KBREL_SHARD": "1/1",
        "KBREL_OUTPUT": "kbrel-shards/kbrel-shard-1",
    }
    assert run("gate.sh", **shards).returncode == 0
    names = {
        "KBREL_BASELINE": "prod",
        "KBREL_BLESSED": tmp_path / "blessed",
        "KBREL_REASON": "pull request",
    }
    page = tmp_path / "page.md"
    result = run(
        "bless.sh", KBREL_FROM_RUN="kbrel-shards", GITHUB_STEP_SUMMARY=page, **names
    )
    assert result.returncode == 0, result.stdout + result.stderr
    # The gate of the same shards has written its summary.
    assert not page.exists()
    assert len(list((tmp_path / "blessed").iterdir())) == 2

    checkout = tmp_path / "checkout"
    git(tmp_path, "clone", "-q", "-b", "topic", str(origin), str(checkout))
    pushed = run("push-baseline.sh", cwd=checkout, KBREL_BRANCH="topic", **names)
    assert pushed.returncode == 0, pushed.stderr
    changed = git(origin, "diff", "--name-only", "topic~", "topic").split()
    assert "baselines/prod/baseline.json" in changed
    assert {name.rpartition("/")[0] for name in changed} == {"baselines/prod"}
    assert (
        git(origin, "log", "-1", "--format=%B", "topic")
        == "Bless the baseline prod\n\npull request\n\n"
    )
    files = git(origin, "ls-tree", "--name-only", "topic", "baselines/prod/").split()
    assert len(files) == 2
    compared = run("gate.sh", KBREL_FROM_RUN="kbrel-shards", KBREL_BASELINE="prod")
    # The lower bound fails as before, and nothing is lost against what was blessed.
    assert compared.returncode == 1
    assert "no fact lost or gained" in compared.stdout

    # Whoever pushed meanwhile is not overwritten.
    git(checkout, "reset", "-q", "--hard", "HEAD~")
    late = run("push-baseline.sh", cwd=checkout, KBREL_BRANCH="topic", **names)
    assert late.returncode != 0
    assert git(origin, "log", "--format=%s", "topic").count("Bless") == 1


@pytest.mark.slow
def test_an_unsound_run_blesses_nothing(run, project, tmp_path):
    rules = ({"contains": "capital", "error": "boom"}, {"default": {"text": "x"}})
    (project / "broken.jsonl").write_text(
        "".join(json.dumps(rule) + "\n" for rule in rules)
    )
    shard = {"KBREL_SHARD": "1/1", "KBREL_OUTPUT": "kbrel-shards/1"}
    run("gate.sh", KBREL_MODEL="scripted/broken.jsonl", **shard)
    names = {
        "KBREL_BASELINE": "prod",
        "KBREL_BLESSED": tmp_path / "blessed",
        "KBREL_REASON": "x",
    }
    result = run("bless.sh", KBREL_FROM_RUN="kbrel-shards", **names)
    assert result.returncode == 1, result.stdout
    assert "nothing was blessed" in result.stderr
    assert not (project / "baselines").exists()
    assert not (tmp_path / "blessed").exists()


@pytest.mark.parametrize("script", ["bless.sh", "push-baseline.sh"])
@pytest.mark.parametrize("name", ["../x", "a/b", "", "-x", "."])
def test_a_baseline_has_a_name_and_no_path(run, script, name):
    result = run(
        script,
        KBREL_BASELINE=name,
        KBREL_BLESSED="b",
        KBREL_FROM_RUN="r",
        KBREL_REASON="x",
    )
    assert result.returncode == 4
    assert (
        f"KBREL_BASELINE: found '{name}'; allowed: the name of a baseline"
        in result.stderr
    )


def test_a_baseline_behind_a_link_is_not_written(run, project, tmp_path):
    (project / "baselines").symlink_to(tmp_path)
    result = run(
        "push-baseline.sh",
        KBREL_BASELINE="prod",
        KBREL_BLESSED="b",
        KBREL_BRANCH="topic",
    )
    assert result.returncode == 4
    assert "is a symbolic link; allowed: a folder" in result.stderr


OUTCOMES = "outcomes-0123456789ab.jsonl.xz"


@pytest.mark.parametrize(
    "bad", [{"baseline.json": None}, {OUTCOMES: None}, {"outcomes-x.jsonl.xz": "x"}, {}]
)
def test_only_files_of_a_baseline_are_committed(run, project, tmp_path, bad):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "blessed").mkdir()
    files = (
        {"baseline.json": "{}", OUTCOMES: "x"} | bad if bad else {"baseline.json": "{}"}
    )
    for name, text in files.items():
        path = tmp_path / "blessed" / name
        path.symlink_to("../secret") if text is None else path.write_text(text)
    names = {"KBREL_BASELINE": "prod", "KBREL_BRANCH": "topic"}
    result = run("push-baseline.sh", KBREL_BLESSED=tmp_path / "blessed", **names)
    assert result.returncode == 4
    assert "found no file of a baseline; allowed: baseline.json and " in result.stderr
    assert not (project / "baselines").exists()


def git(folder, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
