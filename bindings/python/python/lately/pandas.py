"""Duplicates of data frames of pandas."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import timedelta
from typing import Any, Unpack

import pandas as pd

from lately._lately import Filter
from lately._terms import OtherTerms, filter_of

__all__ = ["drop_duplicates", "duplicated"]


def _column(series: pd.Series) -> Any:
    """A column as an array that a filter reads without making objects of it, where that is possible."""
    if series.dtype.kind in "iuSUM" and isinstance(series.dtype, _numpy_dtype()):
        return series.to_numpy()
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        return series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    if hasattr(series, "__arrow_c_stream__") and series.dtype != object:
        return series
    # Missing texts are floats that are no number to pandas.
    return series.astype(object).where(series.notna(), None).to_numpy()


def _numpy_dtype() -> type:
    import numpy

    return numpy.dtype


def duplicated(
    df: pd.DataFrame,
    key: Hashable | Sequence[Hashable] | None = None,
    time: Hashable | None = None,
    within: str | timedelta | None = None,
    *,
    filter: Filter | None = None,
    **terms: Unpack[OtherTerms],
) -> pd.Series:
    """Which rows are duplicates of rows before them: a series of bools.

    ``key`` is a column or a list of them, all but ``time`` by default. ``time`` is the column of their times; without
    it rows happen now. The terms are those of ``lately.Filter``; or give a ``filter`` that remembers beyond this call.

    >>> import lately.pandas, pandas
    >>> df = pandas.DataFrame({"tag": ["a", "a", "a"], "at": [0.0, 4.0, 9.5]})
    >>> lately.pandas.duplicated(df, "tag", "at", within="5s", renew="fresh").tolist()
    [False, True, False]
    """
    judge = filter_of(within, filter, terms)
    if key is None:
        names: list[Hashable] = [name for name in df.columns if name != time]
    elif isinstance(key, list):
        names = key
    else:
        names = [key]
    times = None if time is None else _column(df[time])
    mask = judge.observe_columns([_column(df[name]) for name in names], times)
    return pd.Series(mask, index=df.index)


def drop_duplicates(
    df: pd.DataFrame,
    key: Hashable | Sequence[Hashable] | None = None,
    time: Hashable | None = None,
    within: str | timedelta | None = None,
    *,
    filter: Filter | None = None,
    **terms: Unpack[OtherTerms],
) -> pd.DataFrame:
    """The rows that are no duplicates of rows before them, in order. See ``duplicated``.

    >>> import lately.pandas, pandas
    >>> df = pandas.DataFrame({"tag": ["a", "b", "a"], "n": [1, 2, 3]})
    >>> lately.pandas.drop_duplicates(df, "tag")["n"].tolist()
    [1, 2]
    """
    return df[~duplicated(df, key, time, within, filter=filter, **terms)]
