"""The store on disks that are full, read-only, torn or shared: real ones where a test may have them."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache import machine_lease as store_owner
from pytest_kbrel.models.cache.locks import Lock, is_held
from pytest_kbrel.models.cache.machine_lease import RECORD, Owner
from pytest_kbrel.models.cache.store import FILE, Store
from pytest_kbrel.records import Generated
from tests.function_model import FunctionModel

ONE = FunctionModel().describe()
KEYS = [f"{n:064x}" for n in range(400)]
PAGE = 4096


def said(key: str) -> Generated:
    return Generated(
        text=f"said {key} " * 5, token_ids=(1,), finish="stop", prompt_tokens=1, prompt_digest="d"
    )


def fill(folder: Path) -> Path:
    store = Store(folder)
    store.put(((key, said(key)) for key in KEYS), ONE)
    store.close()
    return folder / FILE


def test_garbage_in_any_page_is_never_served(tmp_path):
    """Each page of the file in turn, and some of them together, hold random bytes or another page's."""
    whole = fill(tmp_path).read_bytes()
    pages = len(whole) // PAGE
    draw = random.Random(0)
    outcomes = set()
    torn = [(page,) for page in range(pages)] + [tuple(draw.sample(range(pages), 3)) for _ in range(10)]
    for number, spoilt in enumerate(torn):
        data = bytearray(whole)
        for page in spoilt:
            other = draw.randrange(pages) * PAGE
            garbage = draw.randbytes(PAGE) if number % 2 else whole[other : other + PAGE]
            # A write that was torn: the page's second half is another one's.
            start = page * PAGE + (PAGE // 2) * (number % 3 == 0)
            data[start : (page + 1) * PAGE] = garbage[: (page + 1) * PAGE - start]
        (tmp_path / FILE).write_bytes(data)
        for rest in tmp_path.glob(f"{FILE}-*"):
            rest.unlink()
        for key in KEYS[::40]:
            try:
                store = Store(tmp_path, patience=0)
                try:
                    found = store.get([key])
                finally:
                    store.close()
            except StoreError:
                outcomes.add("error")
            else:
                assert found in ({}, {key: said(key)})
                outcomes.add("served" if found else "gone")
    assert {"error", "served"} <= outcomes


CODE = """
    import sys
    from pathlib import Path
    from pytest_kbrel.errors import StoreError
    from tests.models.cache.test_store_disk import KEYS, ONE, Store, said

    store = Store(Path(sys.argv[1]))
    put = []
    try:
        for key in KEYS:
            store.put([(key, said(key))], ONE)
            put.append(key)
    except StoreError as error:
        print("error", error)
    assert 10 < len(put) < len(KEYS), len(put)
    assert store.get(put) == {key: said(key) for key in put}
    store.close()
    print("kept", len(put))
"""


def in_namespace(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script that may mount; skipped where the system does not let us."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rm", "true"], capture_output=True).returncode:
        pytest.skip("this system lets nobody mount a disk of his own")
    done = subprocess.run([unshare, "-rm", "sh", "-ec", script, "sh", *args], capture_output=True, text=True)
    if done.returncode == 32:
        pytest.skip(f"cannot mount: {done.stderr}")
    return done


def test_a_disk_that_is_full_is_an_error_and_what_was_put_stays(tmp_path):
    done = in_namespace(
        'mount -t tmpfs -o size=400k none "$1"; exec "$2" -c "$3" "$1"',
        *(str(tmp_path), sys.executable, textwrap.dedent(CODE)),
    )
    assert done.returncode == 0, done.stderr
    assert "kept answers cannot be read or written: database or disk is full" in done.stdout


def test_a_file_that_may_not_grow_is_an_error_and_what_was_put_stays(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
    done = subprocess.run(
        [sys.executable, "-c", limit + textwrap.dedent(CODE), str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "error" in done.stdout
    store = Store(tmp_path)
    kept = int(done.stdout.split()[-1])
    assert store.get(KEYS[:kept]) == {key: said(key) for key in KEYS[:kept]}
    store.close()


@pytest.mark.parametrize("filled", [True, False])
def test_a_disk_that_is_read_only_is_an_error(tmp_path, filled):
    if filled:
        fill(tmp_path)
    code = """
        import sys
        from pathlib import Path
        from tests.models.cache.test_store_disk import Store, StoreError
        try:
            Store(Path(sys.argv[1]))
        except StoreError as error:
            print(error)
    """
    done = in_namespace(
        'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; exec "$2" -c "$3" "$1"',
        *(str(tmp_path), sys.executable, textwrap.dedent(code)),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path / FILE}: kept answers cannot be read or written: ")
    assert "Read-only file system" in done.stdout


@pytest.fixture
def quick(monkeypatch):
    """Listen for other machines a tenth of a second."""
    monkeypatch.setattr(store_owner, "SILENCE", 0.1)
    monkeypatch.setattr(store_owner, "BEAT", 0.0)


def other(folder: Path, beat: str = "1", at: float | None = None) -> None:
    """Leave another machine's sign in the folder."""
    signs = {"machine": "other", "host": "node7", "at": time.time() if at is None else at, "beat": beat}
    (folder / RECORD).write_text(json.dumps(signs))


def test_another_machine_that_is_alive_keeps_the_folder(tmp_path, monkeypatch, quick):
    other(tmp_path)
    beats = iter(range(100))
    sleep = time.sleep

    def beating(seconds):
        other(tmp_path, beat=str(next(beats)))
        sleep(seconds)

    monkeypatch.setattr(store_owner.time, "sleep", beating)
    with pytest.raises(StoreError, match=r"another machine uses this folder, 'node7'.*--kb-use-cache"):
        Store(tmp_path)
    assert json.loads((tmp_path / RECORD).read_text())["machine"] == "other"
    assert not (tmp_path / FILE).exists()


def test_a_folder_of_a_machine_that_is_gone_is_taken_over(tmp_path, quick):
    fill(tmp_path)
    other(tmp_path)
    store = Store(tmp_path)
    assert store.get(KEYS[:1]) == {KEYS[0]: said(KEYS[0])}
    assert json.loads((tmp_path / RECORD).read_text())["machine"] == store_owner.machine()
    store.close()


def test_workers_of_one_machine_take_a_folder_over_together(tmp_path, monkeypatch, quick):
    other(tmp_path)
    sleep, first = time.sleep, Owner(tmp_path)

    def taking(seconds):
        monkeypatch.setattr(store_owner.time, "sleep", sleep)
        first.hold()

    monkeypatch.setattr(store_owner.time, "sleep", taking)
    second = Owner(tmp_path)
    second.hold()
    first.hold()
    assert json.loads((tmp_path / RECORD).read_text())["machine"] == store_owner.machine()


def test_a_sign_from_long_ago_is_not_waited_for(tmp_path, monkeypatch):
    other(tmp_path, at=time.time() - 3600)
    waits = []
    monkeypatch.setattr(store_owner.time, "sleep", waits.append)
    Store(tmp_path).close()
    assert store_owner.SILENCE / 10 not in waits


@pytest.mark.parametrize("use", ["get", "put", "query"])
def test_a_machine_that_took_the_folder_is_noticed_before_the_next_use(tmp_path, quick, use):
    store = Store(tmp_path)
    other(tmp_path)
    uses = {
        "get": lambda: store.get(KEYS[:1]),
        "put": lambda: store.put([(KEYS[0], said(KEYS[0]))], ONE),
        "query": lambda: store.query(("SELECT 1", ())),
    }
    with pytest.raises(StoreError, match="another machine uses this folder, 'node7'"):
        uses[use]()
    store.close()


@pytest.mark.parametrize("sign", ["", "{", "[]", '"x"', "\x00"])
def test_a_sign_that_cannot_be_read_is_none(tmp_path, quick, sign):
    (tmp_path / RECORD).write_text(sign)
    Store(tmp_path).close()
    assert json.loads((tmp_path / RECORD).read_text())["machine"] == store_owner.machine()


def test_many_stores_of_one_machine_get_along(tmp_path, quick):
    owners = [Owner(tmp_path) for _ in range(5)]
    for _ in range(20):
        for owner in owners:
            owner.hold()
    assert [path.name for path in tmp_path.iterdir()] == [RECORD]


def test_a_lock_ends_with_its_process(tmp_path):
    path = tmp_path / "run-1.lock"
    code = f"""
        import time
        from pathlib import Path
        from pytest_kbrel.models.cache.locks import Lock
        assert Lock(Path({str(path)!r})).take()
        print("held", flush=True)
        time.sleep(60)
    """
    code = (
        textwrap.dedent(code).replace("assert Lock", "lock = Lock").replace(".take()", "; assert lock.take()")
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert is_held(path, patience=0)
        assert not Lock(path).take()
        process.kill()
    assert not is_held(path)
    assert not is_held(tmp_path / "none")
    lock = Lock(path)
    assert lock.take()
    assert is_held(path, patience=0)
    lock.free()


def test_an_older_page_that_fits_is_never_served_as_another_answer(tmp_path):
    """The page that holds an answer is one from before, in which another text stood at its place."""
    path = fill(tmp_path)
    whole = path.read_bytes()
    at = whole.index(f"said {KEYS[7]} ".encode()) + len("said ")
    path.write_bytes(whole[:at] + KEYS[9].encode() + whole[at + len(KEYS[9]) :])
    store = Store(tmp_path)
    with pytest.raises(StoreError, match="its checksum is wrong"):
        store.get([KEYS[7]])
    assert store.get([KEYS[9]]) == {KEYS[9]: said(KEYS[9])}
    store.close()
