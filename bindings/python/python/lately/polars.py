"""Duplicates of data frames of Polars, as functions and as the namespace ``lately``.

>>> import polars as pl, lately.polars
>>> df = pl.DataFrame({"tag": ["a", "b", "a"], "n": [1, 2, 3]})
>>> df.lately.drop_duplicates("tag")["n"].to_list()
[1, 2]
>>> df.filter(~pl.col("tag").lately.is_duplicated())["n"].to_list()
[1, 2]
>>> df.lazy().lately.drop_duplicates("tag").collect()["n"].to_list()
[1, 2]
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Unpack

import polars as pl

from lately._lately import Filter
from lately._terms import OtherTerms, filter_of

__all__ = ["drop_duplicates", "duplicated"]



def _mask(filter: Filter, columns: list[pl.Series], times: pl.Series | None) -> pl.Series:
    return pl.Series(filter.observe_columns(columns, times))


def duplicated(
    df: pl.DataFrame,
    key: str | Sequence[str] | None = None,
    time: str | None = None,
    within: str | timedelta | None = None,
    *,
    filter: Filter | None = None,
    **terms: Unpack[OtherTerms],
) -> pl.Series:
    """Which rows are duplicates of rows before them: a series of bools.

    ``key`` is a column or a list of them, all but ``time`` by default. ``time`` is the column of their times; without
    it rows happen now. The terms are those of ``lately.Filter``; or give a ``filter`` that remembers beyond this call.

    >>> import polars as pl, lately.polars
    >>> df = pl.DataFrame({"tag": ["a", "a", "a"], "at": [0.0, 4.0, 9.5]})
    >>> lately.polars.duplicated(df, "tag", "at", within="5s", renew="fresh").to_list()
    [False, True, False]
    """
    filter = filter_of(within, filter, terms)
    if key is None:
        names = [name for name in df.columns if name != time]
    else:
        names = [key] if isinstance(key, str) else list(key)
    return _mask(filter, [df[name] for name in names], None if time is None else df[time])


def drop_duplicates(
    df: pl.DataFrame,
    key: str | Sequence[str] | None = None,
    time: str | None = None,
    within: str | timedelta | None = None,
    *,
    filter: Filter | None = None,
    **terms: Unpack[OtherTerms],
) -> pl.DataFrame:
    """The rows that are no duplicates of rows before them, in order. See ``duplicated``."""
    return df.filter(~duplicated(df, key, time, within, filter=filter, **terms))


@pl.api.register_dataframe_namespace("lately")
class _DataFrame:
    def __init__(self, df: pl.DataFrame) -> None:
        self._df = df

    def duplicated(self, *arguments: Any, **terms: Any) -> pl.Series:
        return duplicated(self._df, *arguments, **terms)

    def drop_duplicates(self, *arguments: Any, **terms: Any) -> pl.DataFrame:
        return drop_duplicates(self._df, *arguments, **terms)


@pl.api.register_lazyframe_namespace("lately")
class _LazyFrame:
    def __init__(self, frame: pl.LazyFrame) -> None:
        self._frame = frame

    def drop_duplicates(self, *arguments: Any, **terms: Any) -> pl.LazyFrame:
        # In one piece: a filter needs its rows in order.
        return self._frame.map_batches(
            lambda df: drop_duplicates(df, *arguments, **terms), streamable=False
        )


@pl.api.register_expr_namespace("lately")
class _Expr:
    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def is_duplicated(
        self,
        time: str | pl.Expr | None = None,
        within: str | timedelta | None = None,
        *,
        by: Sequence[str | pl.Expr] = (),
        filter: Filter | None = None,
        **terms: Unpack[OtherTerms],
    ) -> pl.Expr:
        """True for duplicates. ``by`` are further columns of the key, ``time`` is that of the times."""
        of = [pl.col(one) if isinstance(one, str) else one for one in by]
        parts = [self._expression, *of]
        at = [] if time is None else [pl.col(time) if isinstance(time, str) else time]

        def mask(series: Sequence[pl.Series]) -> pl.Series:
            # An expression may be evaluated more than once, and a filter of its own begins anew each time.
            judge = filter_of(within, filter, terms)
            columns = list(series[: len(parts)])
            return _mask(judge, columns, series[len(parts)] if at else None)

        return pl.map_batches(
            [*parts, *at], mask, return_dtype=pl.Boolean(), is_elementwise=False
        )
