package lately.flink;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource.NumberSequenceSplit;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiter;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;

/** Lets so many records of a source through, and then none, or none before the next checkpoint. */
final class Gate implements RateLimiter<NumberSequenceSplit> {
    private final long limit;
    private final boolean checkpointOpens;
    private final CompletableFuture<Void> opened = new CompletableFuture<>();
    private long released;

    private Gate(long limit, boolean checkpointOpens) {
        this.limit = limit;
        this.checkpointOpens = checkpointOpens;
    }

    static RateLimiterStrategy<NumberSequenceSplit> open() {
        return parallelism -> new Gate(Long.MAX_VALUE, false);
    }

    static RateLimiterStrategy<NumberSequenceSplit> after(long records) {
        return parallelism -> new Gate(records, false);
    }

    static RateLimiterStrategy<NumberSequenceSplit> untilCheckpointAfter(long records) {
        return parallelism -> new Gate(records, true);
    }

    @Override
    public CompletionStage<Void> acquire(int records) {
        released += records;
        return released > limit ? opened : CompletableFuture.completedFuture(null);
    }

    @Override
    public void notifyCheckpointComplete(long checkpoint) {
        if (checkpointOpens && released > limit) {
            opened.complete(null);
        }
    }
}
