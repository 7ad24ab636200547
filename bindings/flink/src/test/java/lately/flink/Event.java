package lately.flink;

import java.time.Instant;
import java.util.Objects;

/** An event of the tests: everything about it follows from its number. */
public final class Event {
    /** 2024-05-01 in UTC. */
    private static final long BEGIN = 1_714_521_600_000L;

    /** Its place in the stream. */
    public long number;
    /** Its key; null for a few. */
    public String key;
    /** When it happened, in milliseconds. */
    public long millis;

    public Event() {}

    /** The event with this number: one every 10 ms, of some 500 keys, up to {@code disorder} ms behind. */
    static Event of(long number, long disorder) {
        Event event = new Event();
        event.number = number;
        long random = mix(number);
        event.key = number % 97 == 5 ? null : "tag " + Long.remainderUnsigned(random, 500);
        event.millis = BEGIN + number * 10 - Long.remainderUnsigned(mix(random), disorder + 1);
        return event;
    }

    /** The same, but one in a thousand claims to be of the year 2200. */
    static Event withWrongDates(long number, long disorder) {
        Event event = of(number, disorder);
        if (number % 1000 == 7) {
            event.millis = 7_258_118_400_000L;
        }
        return event;
    }

    Instant at() {
        return Instant.ofEpochMilli(millis);
    }

    /** The finalizer of SplitMix64. */
    private static long mix(long x) {
        x = (x + 1) * 0x9e3779b97f4a7c15L;
        x = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
        x = (x ^ (x >>> 27)) * 0x94d049bb133111ebL;
        return x ^ (x >>> 31);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Event && ((Event) other).number == number;
    }

    @Override
    public int hashCode() {
        return Objects.hash(number);
    }
}
