"""Files that are written: whole or not at all, never over others unasked, and into what is no file."""

import os
import subprocess
import sys
import threading

import pytest

from pytest_kbrel import outputs
from pytest_kbrel.cli import main
from pytest_kbrel.outputs import new_file, write_text

PREDICTION = (
    '{"question": "Capital of Peru?", "answers": ["Lima"], "prediction": "x"}\n'
)


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """Run a command that writes about 200 bytes to an output; return its exit code."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text(PREDICTION * 2)
    return lambda output, *more: main(
        ["judge", "in.jsonl", f"--output={output}", *more]
    )


def test_a_file_is_the_old_one_or_the_whole_new_one(tmp_path):
    path = tmp_path / "deep" / "file"
    write_text(path, "a\ud800b", force=False)
    assert path.read_bytes() == b"a?b"

    def breaks():
        with new_file(path, force=True) as stream:
            stream.write("half")
            stream.flush()
            assert path.read_bytes() == b"a?b"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        breaks()
    assert path.read_bytes() == b"a?b"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_what_is_there_is_refused_without_force(judge, tmp_path, capsys):
    output = tmp_path / "notes.md"
    output.write_text("mine")
    assert judge(output) == 2
    assert f"{output}: exists already; name another" in capsys.readouterr().err
    assert output.read_text() == "mine"
    assert judge(output, "--force") == 0
    assert output.read_text().count("verdict") == 2
    assert judge(tmp_path, "--force") == 2
    assert f"{tmp_path}: is a folder" in capsys.readouterr().err


def test_a_link_is_no_way_to_other_files(judge, tmp_path):
    (tmp_path / "real").write_text("mine")
    for name in ("real", "nowhere"):
        (tmp_path / "link").symlink_to(name)
        assert judge("link") == 2
        assert os.readlink(tmp_path / "link") == name
        assert judge("link", "--force") == 0
        assert (tmp_path / "link").read_text().count("verdict") == 2
        (tmp_path / "link").unlink()
    assert (tmp_path / "real").read_text() == "mine"


def test_a_pipe_is_written_to(judge, tmp_path, capsys, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(
        target=lambda: read.append((tmp_path / "pipe").read_text())
    )
    reader.start()
    assert judge("pipe") == 0
    reader.join(10)
    assert read[0].count("verdict") == 2
    monkeypatch.setattr(outputs, "_PATIENCE", 0.0)
    assert judge("pipe") == 2
    assert "'pipe'" in capsys.readouterr().err
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("name", ["/dev/stdout", "link", "/proc/self/fd/1"])
@pytest.mark.parametrize("to", ["> out", "| cat > out"])
def test_standard_output_is_written_to(judge, tmp_path, name, to):
    (tmp_path / "link").symlink_to("/proc/self/fd/1")
    line = f"{sys.executable} -m pytest_kbrel.cli judge in.jsonl --output={name} {to}"
    subprocess.run(line, shell=True, check=True)
    lines = (tmp_path / "out").read_text().splitlines()
    assert ["verdict" in text for text in lines] == [True, True]
    assert (tmp_path / "link").is_symlink()


def test_a_full_device_is_named_and_stays_one(judge, tmp_path, capsys):
    (tmp_path / "full").symlink_to("/dev/full")
    assert judge("full", "--force") == 2
    assert "No space left on device: 'full'" in capsys.readouterr().err
    assert (tmp_path / "full").is_char_device()


def test_printing_to_a_full_device_says_so(judge, capfd):
    line = [sys.executable, "-m", "pytest_kbrel.cli", "schema"]
    with open("/dev/full", "w") as full:
        assert subprocess.run(line, stdout=full).returncode == 2
    assert capfd.readouterr().err == (
        "kbrel: standard output: [Errno 28] No space left on device\n"
    )


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
from pytest_kbrel.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("judge", "in.jsonl", "--output=out.jsonl"), "'out.jsonl'"),
        (("init", "."), "'suites/world.kb.yaml'"),
        (("init", "new/project"), "'new/project/suites/world.kb.yaml'"),
    ],
)
def test_a_full_disk_names_the_file_and_leaves_nothing(
    judge, tmp_path, arguments, named
):
    before = sorted(path.name for path in tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", FULL, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == f"kbrel: [Errno 27] File too large: {named}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == before
