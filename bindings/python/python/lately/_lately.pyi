from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from os import PathLike
from typing import Any, Final, Literal, Self, TypeAlias, Unpack, final

import numpy as np
import numpy.typing as npt

from lately._plan import PlanTable
from lately._terms import Terms

_Part: TypeAlias = str | bytes | int | None
_Key: TypeAlias = _Part | tuple[_Part, ...]
_Time: TypeAlias = datetime | np.datetime64 | int | float | str | bytes
_Path: TypeAlias = str | PathLike[str]
_Class: TypeAlias = Literal["fresh", "duplicate", "late", "skewed", "missing_key"]
# Arrays of NumPy, anything with the Arrow PyCapsule interface, other sequences.
_Array: TypeAlias = Any

CLASSES: Final[tuple[_Class, ...]]
__version__: Final[str]

@final
class Filter:
    def __new__(cls, **terms: Unpack[Terms]) -> Self: ...
    def observe(self, key: _Key, time: _Time | None = None) -> bool: ...
    def classify(self, key: _Key, time: _Time | None = None) -> _Class: ...
    def seen(self, key: _Key, time: _Time | None = None) -> bool: ...
    def last_seen(self, key: _Key, time: _Time | None = None) -> tuple[int, int] | None: ...
    def observe_many(self, keys: _Array, times: _Array | None = None) -> npt.NDArray[np.bool_]: ...
    def observe_columns(
        self, columns: Sequence[_Array], times: _Array | None = None
    ) -> npt.NDArray[np.bool_]: ...
    def classify_columns(
        self, columns: Sequence[_Array], times: _Array | None = None
    ) -> npt.NDArray[np.uint8]: ...
    def seen_many(self, keys: _Array, time: _Time | None = None) -> npt.NDArray[np.bool_]: ...
    def any_in(self, keys: range | _Array, time: _Time | None = None) -> bool: ...
    def save(self, path: _Path) -> None: ...
    @classmethod
    def load(cls, path: _Path) -> Self: ...
    @classmethod
    def open(cls, path: _Path, **terms: Unpack[Terms]) -> Self: ...
    def merge(self, other: Filter) -> None: ...
    def plan(self) -> PlanTable: ...
    def info(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    @property
    def memory(self) -> int: ...
    @property
    def fpr(self) -> float: ...
    @property
    def estimated_fpr(self) -> float: ...
    @property
    def clock(self) -> int | None: ...
    @property
    def overload(self) -> dict[str, int]: ...
    def __reduce__(self) -> Any: ...

@final
class Index:
    def __new__(
        cls,
        *,
        within: str | timedelta | None = None,
        last: int | str | None = None,
        key_format: Literal["number", "signed", "decimal", "time", "epc", "ip"] = "number",
        interval: int | str | None = None,
        expect: int | str | None = None,
        memory: int | str | None = None,
        fpr: float | str | None = None,
        slack: str | int | timedelta | None = None,
        seed: int = 0,
        lateness: str | timedelta | None = None,
        max_skew: str | timedelta | None = None,
    ) -> Self: ...
    def observe(self, key: int | str, time: _Time | None = None) -> bool: ...
    def observe_many(self, keys: Iterable[int | str], times: _Array | None = None) -> int: ...
    def any_in(
        self,
        first: int | str,
        last: int | str | None = None,
        *,
        within: int | str | timedelta | None = None,
    ) -> bool: ...
    def save(self, path: _Path) -> None: ...
    @classmethod
    def load(cls, path: _Path) -> Self: ...
    @property
    def memory(self) -> int: ...
    @property
    def clock(self) -> int | None: ...
    def __reduce__(self) -> Any: ...

def plan(**terms: Unpack[Terms]) -> PlanTable: ...
def dedup_file(
    inputs: _Path | Iterable[_Path],
    output: _Path,
    *,
    key: str | Sequence[str] | None = None,
    time: str | Sequence[str] | None = None,
    format: str = "auto",
    time_format: str = "auto",
    time_zone: str = "UTC",
    key_format: Literal["text", "epc", "ip", "number", "uuid"] = "text",
    key_regex: str | None = None,
    fold_case: bool = False,
    delimiter: str | None = None,
    no_header: bool = False,
    records: str | None = None,
    null: bool = False,
    merge: bool = False,
    max_line: int | str | None = None,
    max_document: int | str | None = None,
    duplicates: _Path | None = None,
    state: _Path | None = None,
    threads: int | None = None,
    **terms: Unpack[Terms],
) -> dict[str, Any]: ...
