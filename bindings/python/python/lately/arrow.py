"""Duplicates of tables and record batches of PyArrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Unpack

import pyarrow as pa

from lately._lately import Filter
from lately._terms import OtherTerms, filter_of

__all__ = ["dedup_batches", "drop_duplicates"]


def _fresh(data: Any, key: str | Sequence[str] | None, time: str | None, filter: Filter) -> Any:
    """The rows of a table or a batch that are no duplicates."""
    if key is None:
        names = [name for name in data.schema.names if name != time]
    else:
        names = [key] if isinstance(key, str) else list(key)
    times = None if time is None else data.column(time)
    mask = filter.observe_columns([data.column(name) for name in names], times)
    return data.filter(pa.array(~mask))


def drop_duplicates(
    table: pa.Table,
    key: str | Sequence[str] | None = None,
    time: str | None = None,
    within: str | timedelta | None = None,
    *,
    filter: Filter | None = None,
    **terms: Unpack[OtherTerms],
) -> pa.Table:
    """The rows of a table (or a record batch) that are no duplicates of rows before them, in order.

    ``key`` is a column or a list of them, all but ``time`` by default. ``time`` is the column of their times; without
    it rows happen now. The terms are those of ``lately.Filter``; or give a ``filter`` that remembers beyond this call.

    >>> import pyarrow as pa, lately.arrow
    >>> table = pa.table({"tag": ["a", "b", "a"], "n": [1, 2, 3]})
    >>> lately.arrow.drop_duplicates(table, "tag")["n"].to_pylist()
    [1, 2]
    """
    return _fresh(table, key, time, filter_of(within, filter, terms))


def dedup_batches(
    batches: Iterable[pa.RecordBatch],
    key: str | Sequence[str] | None = None,
    time: str | None = None,
    within: str | timedelta | None = None,
    *,
    filter: Filter | None = None,
    **terms: Unpack[OtherTerms],
) -> Iterator[pa.RecordBatch]:
    """Yields record batches without the rows that are duplicates of rows before them, in any batch.

    ``batches`` is a ``RecordBatchReader``, the ``to_batches()`` of a table or a dataset, or any other iterable.

    >>> import pyarrow as pa, lately.arrow
    >>> batch = pa.record_batch({"tag": ["a", "b"]})
    >>> [len(one) for one in lately.arrow.dedup_batches([batch, batch], "tag")]
    [2, 0]
    """
    judge = filter_of(within, filter, terms)
    return (_fresh(batch, key, time, judge) for batch in batches)
