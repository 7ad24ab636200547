"""Have I seen this lately? Duplicates within a window, in one pass and bounded memory.

>>> import lately
>>> seen = lately.Filter(within="10s")
>>> seen.observe("tag 1", "2024-05-01T10:00:00Z")
False
>>> seen.observe("tag 1", "2024-05-01T10:00:09Z")
True

``Filter`` answers key by key or array by array, ``dedup`` wraps an iterable, ``dedup_file`` does what the program
``lately dedup`` does, ``plan`` shows what a window costs, and ``Index`` answers for intervals of keys. ``lately.pandas``,
``lately.polars`` and ``lately.arrow`` are for data frames and record batches.
"""

from lately._dedup import dedup
from lately._errors import (
    Error,
    InputError,
    KeyTypeError,
    MergeError,
    SpecError,
    StateError,
    TimeError,
)
from lately._lately import CLASSES, Filter, Index, __version__, dedup_file, plan
from lately._plan import PlanTable

__all__ = [
    "CLASSES",
    "Error",
    "Filter",
    "Index",
    "InputError",
    "KeyTypeError",
    "MergeError",
    "PlanTable",
    "SpecError",
    "StateError",
    "TimeError",
    "__version__",
    "dedup",
    "dedup_file",
    "plan",
]
