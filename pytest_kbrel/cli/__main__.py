"""``python -m pytest_kbrel.cli``."""

import sys

from pytest_kbrel.cli import main

sys.exit(main())
