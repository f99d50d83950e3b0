"""The store on disks that are full, read-only, torn or shared: real ones where a test may have them."""

from __future__ import annotations

import contextlib
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
        "query": lambda: store.rows("SELECT 1"),
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
