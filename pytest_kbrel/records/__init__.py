"""The frozen records that the modules of the package pass to each other.

In order: ``Fact -> Ask -> Response -> Outcome -> MetricValue -> GateResult -> Run``. A layer makes new
records and never fills in another layer's fields.
"""

from pytest_kbrel.records.exchange import *  # noqa: F403
from pytest_kbrel.records.results import *  # noqa: F403
from pytest_kbrel.records.suite import *  # noqa: F403
from pytest_kbrel.records.vocabulary import *  # noqa: F403
