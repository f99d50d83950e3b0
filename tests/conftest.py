from __future__ import annotations

import os

# Nothing here may reach for a hub, and two test processes must not fight over the cores.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")
