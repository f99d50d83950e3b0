"""llama.cpp's own server on loopback, in this process: it ends with its last reference."""

from __future__ import annotations

from pathlib import Path

import xllamacpp


def serve(file: Path) -> xllamacpp.Server:
    """Return a server of a GGUF file that computes in float32, on a port that the system chose."""
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx, params.n_parallel, params.port, params.warmup = 1024, 2, 0, False
    params.verbosity = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    # Its keys and values are in half precision unless it is told otherwise.
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = (
        xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    )
    return xllamacpp.Server(params)
