package lately.flink;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;

/**
 * Removes duplicates from a stream, within a window of time, in bounded memory.
 *
 * <pre>{@code
 * Deduplicated<Read> reads =
 *         Lately.<Read>within(Duration.ofSeconds(5))
 *                 .key(read -> read.epc)
 *                 .time(read -> read.at)
 *                 .deduplicate(stream);
 * reads.forwarded().sinkTo(clean);
 * reads.duplicates().sinkTo(dropped);
 * }</pre>
 *
 * <p><b>Guarantee:</b> a duplicate within the window is always recognized, unless the memory ran out, which the metrics
 * {@code forgotten} and {@code refused} tell. A new record is called a duplicate with at most the probability {@link #fpr}.
 * Records are judged by their own times, also out of order, by the law of {@code docs/late.md}; each shard has a clock
 * of its own, which is the newest time of its records. Exactly once under Flink's checkpoints.
 *
 * <p><b>Cost:</b> the filters are in native memory outside of Java's heap, and their bytes of the last checkpoint in the
 * state backend. {@link #memory} is the limit for all slots together: allow for it in
 * {@code taskmanager.memory.task.off-heap.size}.
 *
 * <p>Terms are checked when the job is built, and an {@link IllegalArgumentException} says what is wrong.
 */
public final class Lately<T> {
    private static final int SHARDS = 128;
    /** Flink's own for a parallelism up to 85. */
    private static final int MAX_PARALLELISM = 128;

    private static final long MEMORY = 1L << 30;
    private static final long EXPECT = 1L << 16;

    private Terms terms;
    private List<KeyOf<T>> key;
    private TimeOf<T> time;
    private boolean timed = true;
    private int shards = SHARDS;
    private int maxParallelism = MAX_PARALLELISM;
    private long memory = MEMORY;
    private long expect = EXPECT;

    private Lately(Terms terms) {
        this.terms = terms;
    }

    /** Records whose key was seen at most this long before or after are duplicates. */
    public static <T> Lately<T> within(Duration window) {
        return new Lately<>(new Terms().with("within", window));
    }

    /** Records whose key was ever seen are duplicates. */
    public static <T> Lately<T> forever() {
        return new Lately<T>(new Terms()).byArrival();
    }

    /** Where the key is. Records are alike if all parts of their keys are. */
    @SafeVarargs
    @SuppressWarnings("varargs")
    public final Lately<T> key(KeyOf<T>... parts) {
        if (parts.length == 0) {
            throw new IllegalArgumentException("a key has at least one part");
        }
        key = List.copyOf(Arrays.asList(parts));
        return this;
    }

    /** Where the time of a record is. Without this, it is the timestamp that Flink has for it. */
    public Lately<T> time(TimeOf<T> time) {
        this.time = time;
        timed = true;
        return this;
    }

    /** Records are judged when they arrive. After a failure, those that Flink repeats arrive later than before. */
    public Lately<T> byArrival() {
        time = null;
        timed = false;
        return this;
    }

    /** How far behind the newest time of its shard a record may be to be judged. The window, if nothing is said. */
    public Lately<T> lateness(Duration lateness) {
        return with(terms.with("lateness", lateness));
    }

    /** The largest leap ahead that one record is believed; see {@code lately dedup --max-skew}. */
    public Lately<T> maxSkew(Duration maxSkew) {
        return with(terms.with("max-skew", maxSkew));
    }

    /** Late records are judged by when they arrive, instead of not at all. */
    public Lately<T> judgeLate() {
        return with(terms.with("on-late", "judge"));
    }

    /** Duplicates do not renew their key: of a key that comes all the time, one record per window is fresh. */
    public Lately<T> renewOnFresh() {
        return with(terms.with("renew", "fresh"));
    }

    /** The highest share of new records that are wrongly called duplicates; 0.000001, if nothing is said. */
    public Lately<T> fpr(double share) {
        return with(terms.with("fpr", Double.toString(share)));
    }

    /** How much longer than the window a key may be reported. Less than a microsecond, if nothing is said. */
    public Lately<T> slack(Duration slack) {
        return with(terms.with("slack", slack));
    }

    /** Distinct keys expected within the window, in the whole stream: a hint, filters grow. 65,536, if nothing is said. */
    public Lately<T> expect(long keys) {
        expect = keys;
        return this;
    }

    /** The most bytes of native memory for all shards together; 1 GiB, if nothing is said. Then the oldest keys are forgotten. */
    public Lately<T> memory(long bytes) {
        memory = bytes;
        return this;
    }

    /**
     * How many shards there are: 128, if nothing is said. It bounds the useful parallelism, and cannot change as long as the
     * state is to be kept.
     */
    public Lately<T> shards(int shards) {
        if (shards < 1 || shards > 1 << 15) {
            throw new IllegalArgumentException("shards: expected 1 to 32768, not " + shards);
        }
        this.shards = shards;
        return this;
    }

    /** The maximum parallelism of the operator: shards lie evenly in its key groups. 128, if nothing is said. */
    public Lately<T> maxParallelism(int maxParallelism) {
        if (maxParallelism < 1 || maxParallelism > 1 << 15) {
            throw new IllegalArgumentException(
                    "maxParallelism: expected 1 to 32768, not " + maxParallelism);
        }
        this.maxParallelism = maxParallelism;
        return this;
    }

    private Lately<T> with(Terms terms) {
        this.terms = terms;
        return this;
    }

    /** The terms of the filter of each shard. */
    Terms shardTerms() {
        return terms.with("timed", Boolean.toString(timed))
                .with("shards", Integer.toString(shards))
                .with("memory", Long.toString(memory / shards))
                .with("expect", Long.toString(Math.max(1, expect / shards)));
    }

    /** What records are keyed by. */
    KeySelector<T, Integer> shard() {
        return new Shard<>(new Key<>(key), shards, maxParallelism);
    }

    /**
     * Deduplicates a stream.
     *
     * <p>State is kept under the operator's name; set its {@code uid} before a savepoint has to outlive changes of the job.
     */
    public Deduplicated<T> deduplicate(DataStream<T> stream) {
        if (key == null) {
            throw new IllegalStateException("say where the key is: Lately.within(…).key(record -> …)");
        }
        Terms terms = shardTerms();
        // What cannot be kept is refused before anything is submitted.
        Filter.of(terms).close();
        OutcomeTags<T> tags = new OutcomeTags<>(stream.getType());
        SingleOutputStreamOperator<T> operator =
                stream.keyBy(shard())
                        .transform(
                                "lately",
                                stream.getType(),
                                new Operator<>(terms, new Key<>(key), time, timed, tags))
                        .setMaxParallelism(maxParallelism);
        return new Deduplicated<>(operator, tags);
    }
}
