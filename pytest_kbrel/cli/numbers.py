"""Numbers of the command line, as argparse reads them."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from pytest_kbrel.bounds import Bounds


def whole(bounds: Bounds) -> Callable[[str], int]:
    """Return a reader of whole numbers within ``bounds``; argparse says what its error says."""

    def read(text: str) -> int:
        try:
            return bounds.integer(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read
