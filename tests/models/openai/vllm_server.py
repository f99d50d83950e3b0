"""vLLM's own server on loopback, run by an interpreter that has it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

# The environment variable that names the interpreter: vLLM pins its own torch.
VLLM_PYTHON = "KBREL_VLLM_PYTHON"
# Seconds until it must answer. On a busy machine its imports take minutes.
_START = 600.0


@contextlib.contextmanager
def vllm_server(folder: Path, log: Path, *flags: str) -> Iterator[str]:
    """Serve a checkpoint in float32 as ``small``, yield the server's URL, and end it in every case.

    Its output goes to the file ``log``. Raises ``RuntimeError`` with the end of it where no server comes.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    line = [os.environ[VLLM_PYTHON], "-m", "vllm.entrypoints.openai.api_server"]
    line += [
        "--model",
        str(folder),
        "--served-model-name",
        "small",
        "--dtype",
        "float32",
        "--enforce-eager",
    ]
    line += ["--host", "127.0.0.1", "--port", str(port), "--max-num-seqs", "8"]
    line += ["--gpu-memory-utilization", "0.1", *flags]
    few = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            line,
            env={**os.environ, **few, "HF_HUB_OFFLINE": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(process, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        # Its engine is a process of its own.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + _START
    while time.monotonic() < end and process.poll() is None:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(url, timeout=5) as reply,
        ):
            if reply.status == 200:
                return
        time.sleep(0.5)
    raise RuntimeError(
        f"no server of vLLM came: {log.read_text(errors='replace')[-4000:]}"
    )
