package lately.flink;

import java.io.Serializable;
import java.time.Instant;

/** Finds when a record happened; {@code null} if it does not say, which counts as the newest time of its shard. */
@FunctionalInterface
public interface TimeOf<T> extends Serializable {
    /** The time of {@code record}, between the years 1677 and 2262. */
    Instant of(T record) throws Exception;
}
