package lately.flink;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The law of docs/late.md, kept by remembering every sighting: what each shard of the operator has to answer. */
final class Law {
    private static final long FUTURE = Instant.parse("2100-01-01T00:00:00Z").toEpochMilli();

    private final long window;
    private final long lateness;
    private final boolean renewsAlways;
    private final Shard<Event> shards;
    private final Map<Integer, Long> clocks = new HashMap<>();
    private final Map<String, List<Long>> sightings = new HashMap<>();

    Law(long window, long lateness, boolean renewsAlways, int shardCount) {
        this.window = window;
        this.lateness = lateness;
        this.renewsAlways = renewsAlways;
        this.shards = new Shard<>(new Key<>(List.of(event -> event.key)), shardCount, 128);
    }

    Outcome judge(Event event) throws Exception {
        if (event.key == null) {
            return Outcome.MISSING_KEY;
        }
        if (event.millis > FUTURE) {
            return Outcome.SKEWED;
        }
        Integer shard = shards.getKey(event);
        long clock = Math.max(clocks.getOrDefault(shard, Long.MIN_VALUE), event.millis);
        clocks.put(shard, clock);
        if (event.millis < clock - lateness) {
            return Outcome.LATE;
        }
        List<Long> seen = sightings.computeIfAbsent(event.key, key -> new ArrayList<>());
        boolean known = seen.stream().anyMatch(at -> Math.abs(at - event.millis) <= window);
        if (renewsAlways || !known) {
            seen.add(event.millis);
        }
        // Nothing this old can be asked for again.
        seen.removeIf(at -> at < clock - lateness - window);
        return known ? Outcome.DUPLICATE : Outcome.FRESH;
    }
}
