package lately.flink;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToLongFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.state.StateInitializationContext;
import org.apache.flink.runtime.state.StateSnapshotContext;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;

/**
 * Judges the records of a stream that is keyed by {@link Shard}.
 *
 * <p>The filter of each shard is in native memory. A checkpoint writes those that have changed, each as keyed state under its
 * shard; after a restart, or under another parallelism, a shard's filter is read when its first record comes. That is why
 * this is an operator: a {@code KeyedProcessFunction} reaches the state of the present key only, and not at a checkpoint.
 */
final class Operator<T> extends AbstractStreamOperator<T> implements OneInputStreamOperator<T, T> {
    private static final long serialVersionUID = 1;

    /** What nanoseconds since 1970 reach, to the second: 1677 to 2262. */
    private static final Instant FIRST = Instant.ofEpochSecond(Long.MIN_VALUE / 1_000_000_000L);

    private static final Instant LAST = Instant.ofEpochSecond(Long.MAX_VALUE / 1_000_000_000L);

    private final Terms terms;
    private final Key<T> key;
    private final TimeOf<T> time;
    private final boolean timed;
    private final OutcomeTags<T> tags;

    private transient ValueState<byte[]> state;
    /** Metrics are read by another thread. */
    private transient Map<Integer, Filter> filters;
    private transient Set<Integer> changed;
    private transient Counter[] counters;

    /** {@code time} is {@code null} for the timestamps of Flink's records. */
    Operator(Terms terms, Key<T> key, TimeOf<T> time, boolean timed, OutcomeTags<T> tags) {
        this.terms = terms;
        this.key = key;
        this.time = time;
        this.timed = timed;
        this.tags = tags;
    }

    @Override
    public void initializeState(StateInitializationContext context) throws Exception {
        super.initializeState(context);
        filters = new ConcurrentHashMap<>();
        changed = new HashSet<>();
        state =
                context.getKeyedStateStore()
                        .getState(
                                new ValueStateDescriptor<>(
                                        "lately-filter", BytePrimitiveArraySerializer.INSTANCE));
    }

    @Override
    public void open() throws Exception {
        super.open();
        MetricGroup group = getMetricGroup().addGroup("lately");
        List<Counter> counters = new ArrayList<>();
        for (Outcome outcome : Outcome.values()) {
            counters.add(group.counter(outcome.name().toLowerCase(Locale.ROOT)));
        }
        this.counters = counters.toArray(Counter[]::new);
        group.gauge("filters", (Gauge<Integer>) () -> filters.size());
        group.gauge("memory", sum(numbers -> numbers.memory));
        group.gauge("forgotten", sum(numbers -> numbers.forgotten));
        group.gauge("refused", sum(numbers -> numbers.refused));
    }

    private Gauge<Long> sum(ToLongFunction<Filter.Numbers> number) {
        return () -> {
            long sum = 0;
            for (Filter filter : filters.values()) {
                sum += number.applyAsLong(filter.numbers());
            }
            return sum;
        };
    }

    @Override
    public void processElement(StreamRecord<T> element) throws Exception {
        Outcome outcome = judge(element);
        counters[outcome.ordinal()].inc();
        if (outcome == Outcome.FRESH) {
            output.collect(element);
        } else {
            output.collect(tags.of(outcome), element);
        }
    }

    private Outcome judge(StreamRecord<T> element) throws Exception {
        byte[] bytes = key.bytes(element.getValue());
        if (bytes == null) {
            return Outcome.MISSING_KEY;
        }
        Integer shard = (Integer) getCurrentKey();
        Filter filter = filters.get(shard);
        if (filter == null) {
            byte[] saved = state.value();
            filter = saved == null ? Filter.of(terms) : Filter.resumed(terms, saved);
            filters.put(shard, filter);
        }
        changed.add(shard);
        return filter.observe(bytes, nanos(element));
    }

    private long nanos(StreamRecord<T> element) throws Exception {
        if (!timed) {
            return Filter.UNTIMED;
        }
        if (time != null) {
            return nanos(time.of(element.getValue()));
        }
        // Sources give each record the least timestamp there is where none is assigned.
        if (!element.hasTimestamp() || element.getTimestamp() == Long.MIN_VALUE) {
            throw new IllegalStateException(
                    "lately: a record without a timestamp: say where its time is with time(…), assign timestamps to the"
                            + " stream, or judge records when they arrive with byArrival()");
        }
        return nanos(Instant.ofEpochMilli(element.getTimestamp()));
    }

    private static long nanos(Instant time) {
        if (time == null) {
            return Filter.UNTIMED;
        }
        // Times that nanoseconds do not reach are as far away as can be said.
        if (!time.isBefore(LAST)) {
            return Long.MAX_VALUE;
        }
        if (!time.isAfter(FIRST)) {
            return Long.MIN_VALUE + 1;
        }
        return time.getEpochSecond() * 1_000_000_000L + time.getNano();
    }

    @Override
    public void snapshotState(StateSnapshotContext context) throws Exception {
        super.snapshotState(context);
        Object current = getCurrentKey();
        for (Integer shard : changed) {
            setCurrentKey(shard);
            state.update(filters.get(shard).save());
        }
        changed.clear();
        if (current != null) {
            setCurrentKey(current);
        }
    }

    @Override
    public void close() throws Exception {
        try {
            super.close();
        } finally {
            if (filters != null) {
                filters.values().forEach(Filter::close);
                filters.clear();
            }
        }
    }
}
