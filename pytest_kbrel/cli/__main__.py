"""``python -m pytest_kbrel.cli``."""

from __future__ import annotations

import sys

from pytest_kbrel.cli import main

sys.exit(main())
