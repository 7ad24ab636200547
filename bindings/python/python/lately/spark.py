"""Duplicates of streams of Spark, with Structured Streaming.

``dedup`` takes a streaming data frame and returns one without the duplicates. It needs PySpark 4.0 or later, with
``lately`` on the driver and on all executors: ``pip install 'lately[spark]'``.

A stream is spread over *shards* by a hash of the key. Each has a filter and a clock of its own, and the filter is a value
of Spark's state: it is read when the first records of its shard come in a micro-batch, and written after the last. Nothing
is kept between micro-batches, so one that is repeated, after a failure or on another executor, begins with the
filter that it began with before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

try:
    import google.protobuf  # noqa: F401  (PySpark needs it only once a stream runs)
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql import functions as F
    from pyspark.sql import types as T
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
except ImportError as error:
    raise ImportError(
        f"lately.spark needs PySpark 4.0 or later, pandas, PyArrow and protobuf ({error}): pip install 'lately[spark]'"
    ) from error

from lately._errors import InputError, KeyTypeError, SpecError, TimeError
from lately._lately import CLASSES, Filter, shard_filter
from lately._terms import OtherTerms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["dedup"]

Keep = Literal["fresh", "forwarded", "all"]

#: The rows that are divided among the shards at a time, and those of a piece of the result.
_ROWS = 1 << 16
#: The most bytes of them.
_BYTES = 1 << 25
#: Spark's provider of state that has no value states; those of vendors are left alone.
_WITHOUT_VALUES = "HDFSBackedStateStoreProvider"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
#: The columns between the steps, where records are pieces of Arrow's format, which changes none of their values.
_PIECES = "shard int, piece binary"


def dedup(
    df: DataFrame,
    key: str | Sequence[str],
    time: str,
    within: str | timedelta,
    *,
    shards: int = 128,
    keep: Keep = "fresh",
    class_column: str | None = None,
    **terms: Unpack[OtherTerms],
) -> DataFrame:
    """The records of a streaming data frame that are no duplicates of records before them.

    ``key`` is a column of texts, bytes or whole numbers, or a list of them; ``time`` a column of timestamps (those
    without a zone are in UTC). The terms are those of ``lately.Filter``; ``expect`` and ``memory`` are for the whole
    stream, and each of the ``shards`` has its part.

    ``keep`` says which records are in the result: ``"fresh"``; ``"forwarded"``, all but the duplicates, as
    ``lately dedup`` writes (late ones, those too far in the future, and those without a key, which are not judged); or
    ``"all"``. ``class_column`` names a further column with the class of each record, one of ``lately.CLASSES``; it is
    ``class`` where all are kept.

    *Order:* the records of a micro-batch have none, so those of a shard are judged in the order of their times. A record is
    late if it is more than ``lateness`` (the window, if nothing is said) behind the newest time of its shard in the
    micro-batches before. What class a record has does not depend on how Spark divides a micro-batch; of records
    with the same key and the same time, any may be the fresh one. After a failure Spark may put more into a micro-batch
    than it would have without, and a record that would have been late is then judged with the others.

    *Cost:* a micro-batch reads and writes the filters of all shards with new records, and an executor holds the
    records of a shard in a micro-batch at once: limit that with ``maxFilesPerTrigger`` or its like.

    *State:* under a checkpoint, ``shards``, the keys and the window must stay; a state of others is refused. Spark has to
    keep it in RocksDB.

    *Raises:* ``SpecError`` for terms that cannot be kept; ``InputError``, ``KeyTypeError`` and ``TimeError`` for columns
    that are missing or of other types.
    """
    names = [key] if isinstance(key, str) else list(key)
    _check_columns(df, names, time)
    if keep not in get_args(Keep):
        raise SpecError(f"keep: expected one of {', '.join(get_args(Keep))}")
    if class_column is None and keep == "all":
        class_column = "class"
    if class_column is not None and class_column in df.columns:
        raise InputError(f"class_column: there is a column '{class_column}' already; choose another name")
    # `bool` is an `int` to Python.
    if type(shards) is not int or not 1 <= shards <= 1 << 15:
        raise SpecError(f"shards: expected 1 to 32768, not {shards!r}")
    asked: dict[str, Any] = {"within": within, **terms}
    if within is None or asked.get("last") is not None:
        raise SpecError("within: a window of time is needed; records of a stream of Spark have no other order")
    # What cannot be kept is refused before anything runs.
    shard_filter(None, shards, names, **asked)
    _check_provider(df)

    # Of a number and its text the same, as keys are.
    texts = [F.col(_quoted(name)).cast("binary" if _is_bytes(df, name) else "string") for name in names]
    shard = F.pmod(F.xxhash64(*texts), F.lit(shards)).cast("int")
    schema = T.StructType(list(df.schema.fields))
    if class_column is not None:
        schema = schema.add(class_column, "string", nullable=False)
    # Between the steps columns are numbered: not every name can be handed to Python.
    numbered = {name: f"c{at}" for at, name in enumerate(df.columns)}
    columns = [F.col(_quoted(name)).alias(short) for name, short in numbered.items()]
    pieces = df.select(shard.alias("shard"), *columns).mapInArrow(_pack, _PIECES)
    judge = _Judge([numbered[name] for name in names], numbered[time], names, shards, keep, class_column is not None, asked)
    judged = pieces.groupBy("shard").transformWithStateInPandas(judge, "piece binary", "Append", "None")
    return judged.mapInArrow(partial(_unpack, schema.names), schema)


def _check_columns(df: DataFrame, names: list[str], time: str) -> None:
    if not names:
        raise InputError("key: a key has at least one column")
    kinds = {field.name: field.dataType for field in df.schema.fields}
    for term, name in [*(("key", name) for name in names), ("time", time)]:
        if name not in kinds:
            raise InputError(f"{term}: there is no column {name!r}, but {', '.join(map(repr, kinds))}")
    if repeated := {name for name in df.columns if df.columns.count(name) > 1}:
        raise InputError(f"columns of one name: {', '.join(map(repr, sorted(repeated)))}")
    for name in names:
        if not isinstance(kinds[name], T.StringType | T.BinaryType | T.IntegralType | T.CharType | T.VarcharType):
            raise KeyTypeError(
                f"key: {name!r} is of type {kinds[name].simpleString()}: a key is texts, bytes or whole numbers; cast it to"
                " string as the input has it"
            )
    if not isinstance(kinds[time], T.TimestampType | T.TimestampNTZType):
        raise TimeError(
            f"time: {time!r} is of type {kinds[time].simpleString()}: times are timestamps; make them with to_timestamp,"
            " timestamp_millis or their like"
        )


def _check_provider(df: DataFrame) -> None:
    """Spark itself says so only once the stream begins, and not what to do."""
    if not df.isStreaming:
        return
    provider = df.sparkSession.conf.get(_PROVIDER, "") or ""
    if provider.rsplit(".", 1)[-1] == _WITHOUT_VALUES:
        raise InputError(f"Spark has to keep the state in RocksDB: spark.conf.set('{_PROVIDER}', '{_ROCKSDB}')")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _is_bytes(df: DataFrame, name: str) -> bool:
    return isinstance(df.schema[name].dataType, T.BinaryType)


def _to_piece(rows: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows)
    piece: bytes = out.getvalue().to_pybytes()
    return piece


def _of_piece(piece: bytes) -> pa.Table:
    return pa.ipc.open_stream(piece).read_all()


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Divides records among their shards, which their first column has: a piece for each."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield _pieces(waiting)
            waiting, rows, size = [], 0, 0
    if rows:
        yield _pieces(waiting)


def _pieces(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches)
    table = table.take(pc.sort_indices(table.column(0)))
    runs = pc.run_end_encode(table.column(0).combine_chunks())
    ends = runs.run_ends.to_pylist()
    records = table.remove_column(0)
    begins = [0, *ends[:-1]]
    pieces = [_to_piece(records.slice(begin, end - begin)) for begin, end in zip(begins, ends, strict=True)]
    return pa.record_batch({"shard": runs.values, "piece": pa.array(pieces, pa.binary())})


def _unpack(names: list[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for piece in batch.column(0):
            yield from _of_piece(piece.as_buffer()).rename_columns(names).to_batches()


def _order(times: pa.ChunkedArray, filter: Filter) -> pa.Array:
    """The order in which the records of a micro-batch are judged: that of their times, and then those without one.

    Those that are late whatever comes are the last. In front, one after the other, they would look to the clock as if it
    were wrong.
    """
    if filter.clock is None or filter.lateness is None:
        return pc.sort_indices(times)
    micros = pc.cast(pc.cast(times, pa.timestamp("us")), pa.int64())
    late = pc.less(micros, pa.scalar(-((filter.lateness - filter.clock) // 1000), pa.int64()))
    table = pa.table({"late": pc.fill_null(late, False), "time": times})
    return pc.sort_indices(table, sort_keys=[("late", "ascending"), ("time", "ascending")])


class _Judge(StatefulProcessor):
    """Judges the records of a shard in a micro-batch by the filter that its state has."""

    def __init__(
        self, key: list[str], time: str, names: list[str], shards: int, keep: Keep, marks: bool, terms: dict[str, Any]
    ) -> None:
        self._key = key
        self._time = time
        #: What the columns of the key are called, as far as the state is concerned.
        self._names = names
        self._shards = shards
        self._keep = keep
        self._marks = marks
        self._terms = terms

    def init(self, handle: Any) -> None:
        self._state = handle.getValueState("lately-filter", "filter binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        records = pa.concat_tables(_of_piece(piece) for frame in rows for piece in frame["piece"])
        saved = self._state.get()
        filter = shard_filter(None if saved is None else bytes(saved[0]), self._shards, self._names, **self._terms)
        records = records.take(_order(records.column(self._time), filter))
        classes = filter.classify_columns([records.column(name) for name in self._key], records.column(self._time))
        self._state.update((filter.to_bytes(),))
        if self._marks:
            marks = pa.DictionaryArray.from_arrays(classes, list(CLASSES)).cast(pa.string())
            records = records.append_column(pa.field("class", pa.string(), nullable=False), marks)
        if self._keep == "fresh":
            records = records.filter(pa.array(classes == CLASSES.index("fresh")))
        elif self._keep == "forwarded":
            records = records.filter(pa.array(classes != CLASSES.index("duplicate")))
        for begin in range(0, records.num_rows, _ROWS):
            yield pd.DataFrame({"piece": [_to_piece(records.slice(begin, _ROWS))]})

    def close(self) -> None:
        pass
