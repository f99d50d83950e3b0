"""The store on disks that are full, read-only, torn or shared: real ones where a test may have them."""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.store import FILE, Store
from pytest_kbrel.records import Generated
from tests.models.cache.stored import get, put

KEYS = [f"{n:064x}" for n in range(400)]


PAGE = 4096


def run_requests(key: str) -> Generated:
    return Generated(
        text=f"said {key} " * 5,
        token_ids=(1,),
        finish="stop",
        prompt_tokens=1,
        prompt_digest="d",
    )


def fill(folder: Path) -> Path:
    store = Store(folder)
    put(store, ((key, run_requests(key)) for key in KEYS))
    store.close()
    return folder / FILE


@pytest.mark.slow
def test_garbage_in_any_page_is_never_served(tmp_path):
    """Each page of the file in turn, and some of them together, hold random bytes or another page's."""
    whole = fill(tmp_path).read_bytes()
    pages = len(whole) // PAGE
    draw = random.Random(0)
    outcomes = set()
    torn = [(page,) for page in range(pages)] + [
        tuple(draw.sample(range(pages), 3)) for _ in range(10)
    ]
    for number, spoilt in enumerate(torn):
        data = bytearray(whole)
        for page in spoilt:
            other = draw.randrange(pages) * PAGE
            garbage = (
                draw.randbytes(PAGE) if number % 2 else whole[other : other + PAGE]
            )
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
                    result = get(store, [key])
                finally:
                    store.close()
            except StoreError:
                outcomes.add("error")
            else:
                assert result in ({}, {key: run_requests(key)})
                outcomes.add("served" if result else "gone")
    assert {"error", "served"} <= outcomes


CODE = """
    import sys
    from pathlib import Path
    from pytest_kbrel.errors import StoreError
    from tests.models.cache.test_store_disk import KEYS, Store, get, put, run_requests

    store = Store(Path(sys.argv[1]))
    done = []
    try:
        for key in KEYS:
            put(store, [(key, run_requests(key))])
            done.append(key)
    except StoreError as error:
        print("error", error)
    assert 10 < len(done) < len(KEYS), len(done)
    assert get(store, done) == {key: run_requests(key) for key in done}
    store.close()
    print("kept", len(done))
"""


def in_namespace(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script that may mount; skipped where the system does not let us."""
    unshare = shutil.which("unshare")
    if (
        unshare is None
        or subprocess.run([unshare, "-rm", "true"], capture_output=True).returncode
    ):
        pytest.skip("this system lets nobody mount a disk of his own")
    done = subprocess.run(
        [unshare, "-rm", "sh", "-ec", script, "sh", *args],
        capture_output=True,
        text=True,
    )
    if done.returncode == 32:
        pytest.skip(f"cannot mount: {done.stderr}")
    return done


def test_a_disk_that_is_full_is_an_error_and_what_was_put_stays(tmp_path):
    done = in_namespace(
        'mount -t tmpfs -o size=400k none "$1"; exec "$2" -c "$3" "$1"',
        *(str(tmp_path), sys.executable, textwrap.dedent(CODE)),
    )
    assert done.returncode == 0, done.stderr
    assert (
        "kept answers cannot be read or written: database or disk is full"
        in done.stdout
    )


@pytest.mark.parametrize("use", ["get", "put", "query"])
@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_deleted_or_replaced_is_noticed_before_its_next_use(
    tmp_path, use, replaced
):
    path = fill(tmp_path)
    uses = {
        "get": lambda: get(store, KEYS[:1]),
        "put": lambda: put(store, [(KEYS[0], run_requests(KEYS[0]))]),
        "query": lambda: store.query("SELECT 1"),
    }
    with contextlib.closing(Store(tmp_path)) as store:
        uses[use]()
        path.rename(tmp_path / "moved")
        if replaced:
            path.write_bytes((tmp_path / "moved").read_bytes())
        with pytest.raises(
            StoreError, match="was deleted or replaced while it was in use"
        ):
            uses[use]()
