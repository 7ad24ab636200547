package lately.flink;

import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;

/** The records of a stream by what became of them. Each record is in exactly one of the five streams of {@link Outcome}. */
public final class Deduplicated<T> {
    private final SingleOutputStreamOperator<T> operator;
    private final OutcomeTags<T> tags;

    Deduplicated(SingleOutputStreamOperator<T> operator, OutcomeTags<T> tags) {
        this.operator = operator;
        this.tags = tags;
    }

    /** Everything but the duplicates: what {@code lately dedup} writes. */
    public DataStream<T> forwarded() {
        return fresh().union(late(), skewed(), withoutKey());
    }

    /** Records that were not seen within the window. */
    public DataStream<T> fresh() {
        return operator;
    }

    /** Records that were seen within the window. */
    public DataStream<T> duplicates() {
        return only(Outcome.DUPLICATE);
    }

    /** Records that came too late to be judged. */
    public DataStream<T> late() {
        return only(Outcome.LATE);
    }

    /** Records with a time too far in the future to be believed. */
    public DataStream<T> skewed() {
        return only(Outcome.SKEWED);
    }

    /** Records without a key. */
    public DataStream<T> withoutKey() {
        return only(Outcome.MISSING_KEY);
    }

    /** The records with this outcome. */
    public DataStream<T> only(Outcome outcome) {
        return outcome == Outcome.FRESH ? operator : operator.getSideOutput(tags.of(outcome));
    }

    /** The operator, to set its name, its {@code uid}, its parallelism or its slot sharing group. */
    public SingleOutputStreamOperator<T> operator() {
        return operator;
    }
}
