"""What the statistics are computed from: rows of numbers, with the facts they are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Parts = Sequence[tuple[Array, Array]]
    Statistic = Callable[[Parts], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One or more cases' outcomes: ``values[j]`` of shape (facts of case j, columns), with the facts' ids."""

    values: tuple[Array, ...]
    facts: tuple[tuple[str, ...], ...]

    @property
    def n(self) -> int:
        """The number of different facts."""
        return len({fact for ids in self.facts for fact in ids})

    @property
    def totals(self) -> Parts:
        """Column totals, shape (columns,), and number of rows, shape (), of each case."""
        import numpy as np

        return [(values.sum(axis=0), np.asarray(float(len(values)))) for values in self.values]


def sample(
    values: Sequence[Sequence[Sequence[float]]], facts: Sequence[tuple[str, ...]], widths: Sequence[int]
) -> Sample:
    """Make a sample of rows of numbers, the facts they are about, and the number of columns, case by case."""
    import numpy as np

    arrays = (
        np.array(rows, dtype=float).reshape(-1, width) for rows, width in zip(values, widths, strict=True)
    )
    return Sample(values=tuple(arrays), facts=tuple(facts))


def alone(sample: Sample, statistic: Statistic) -> Array:
    """Return the statistic of each row alone, those of all cases one after the other; nan where undefined."""
    import numpy as np

    found = []
    for number, values in enumerate(sample.values):
        parts = [(np.zeros(other.shape[1]), np.asarray(0.0)) for other in sample.values]
        parts[number] = (values, np.ones(len(values)))
        found.append(np.broadcast_to(statistic(parts), (len(values),)))
    return np.concatenate(found)
