import java.time.Duration;
import java.time.Instant;
import lately.flink.Lately;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFilterFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Deduplicates generated events: {@code HeavyJob lately|rough|ttl EVENTS KEYS WINDOW PER-SECOND OUT}. Keys are drawn from so
 * many, or all differ if that is 0; the window is in seconds. {@code rough} is {@code lately} with a slack of a hundredth of
 * the window. The numbers of the events that are forwarded go to the files of a folder; without OUT they are counted, in the
 * accumulator "forwarded". With {@code events} in the first place it prints the events as CSV, for {@code lately dedup}.
 */
public final class HeavyJob {
    /** 2024-05-01 in UTC. */
    private static final long BEGIN = 1_714_521_600_000L;

    /** One event per millisecond, up to this many milliseconds behind. */
    private static final long DISORDER = 30_000;

    private HeavyJob() {}

    public static final class Event {
        private static final byte[] DIGITS = "0123456789ABCDEF".getBytes();

        public long number;
        public String key;
        public long millis;

        public Event() {}

        static Event of(long number, long keys) {
            Event event = new Event();
            long random = mix(number);
            event.number = number;
            event.key = text(keys == 0 ? random : Long.remainderUnsigned(random, keys));
            event.millis = BEGIN + number - Long.remainderUnsigned(mix(random), DISORDER);
            return event;
        }

        /** 24 hexadecimal digits, as tags have. */
        @SuppressWarnings("deprecation") // Each byte is a character: much faster than decoding them.
        private static String text(long key) {
            byte[] digits = new byte[16];
            for (int i = 0; i < digits.length; i++) {
                digits[i] = DIGITS[(int) (key >>> 4 * (15 - i)) & 15];
            }
            return "3034257B".concat(new String(digits, 0));
        }

        Instant at() {
            return Instant.ofEpochMilli(millis);
        }
    }

    /** The finalizer of SplitMix64: no two numbers have the same. */
    private static long mix(long x) {
        x = (x + 1) * 0x9e3779b97f4a7c15L;
        x = (x ^ (x >>> 30)) * 0xbf58476d1ce4e5b9L;
        x = (x ^ (x >>> 27)) * 0x94d049bb133111ebL;
        return x ^ (x >>> 31);
    }

    /** What users of Flink write: the newest time of each key, which Flink drops some time after it was written. */
    static final class Ttl extends KeyedProcessFunction<String, Event, Event> {
        private static final long serialVersionUID = 1;

        private final long window;
        private transient ValueState<Long> newest;

        Ttl(long window) {
            this.window = window;
        }

        @Override
        public void open(OpenContext context) {
            ValueStateDescriptor<Long> descriptor = new ValueStateDescriptor<>("newest", Long.class);
            descriptor.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofMillis(window)).build());
            newest = getRuntimeContext().getState(descriptor);
        }

        @Override
        public void processElement(Event event, Context context, Collector<Event> out)
                throws Exception {
            Long before = newest.value();
            // No event is later than the window, so the newest sighting is enough (docs/late.md).
            if (before == null || event.millis - before > window) {
                out.collect(event);
            }
            if (before == null || event.millis > before) {
                newest.update(event.millis);
            }
        }
    }

    /** Counts what comes, and forwards nothing. */
    static final class Count extends RichFilterFunction<Event> {
        private static final long serialVersionUID = 1;

        private final LongCounter forwarded = new LongCounter();

        @Override
        public void open(OpenContext context) {
            getRuntimeContext().addAccumulator("forwarded", forwarded);
        }

        @Override
        public boolean filter(Event event) {
            forwarded.add(1L);
            return false;
        }
    }

    private static void print(long events, long keys) {
        StringBuilder lines = new StringBuilder("number,key,at\n");
        for (long number = 0; number < events; number++) {
            Event event = Event.of(number, keys);
            lines.append(number).append(',').append(event.key).append(',').append(event.millis).append('\n');
            if (lines.length() > 1 << 16) {
                System.out.print(lines);
                lines.setLength(0);
            }
        }
        System.out.print(lines);
        System.out.flush();
    }

    private static DataStream<Event> deduplicated(
            String kind, DataStream<Event> stream, long window, long events, long keys) {
        if (kind.equals("ttl")) {
            return stream.keyBy(event -> event.key).process(new Ttl(window)).uid("deduplicate");
        }
        var found =
                Lately.<Event>within(Duration.ofMillis(window))
                        .key(event -> event.key)
                        .time(Event::at)
                        .lateness(Duration.ofMillis(DISORDER))
                        // Times are whole milliseconds, so less than one changes no answer; where all keys differ, none does.
                        .slack(keys == 0 || kind.equals("rough") ? Duration.ofMillis(window / 100) : Duration.ofNanos(999_999))
                        .expect(keys == 0 ? events : keys)
                        .memory(8L << 30)
                        .deduplicate(stream);
        found.operator().uid("deduplicate");
        return found.forwarded();
    }

    public static void main(String[] arguments) throws Exception {
        String kind = arguments[0];
        long events = Long.parseLong(arguments[1]);
        long keys = Long.parseLong(arguments[2]);
        if (kind.equals("events")) {
            print(events, keys);
            return;
        }
        long window = Long.parseLong(arguments[3]) * 1000;
        double perSecond = Double.parseDouble(arguments[4]);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataGeneratorSource<Event> source =
                new DataGeneratorSource<>(
                        number -> Event.of(number, keys),
                        events,
                        perSecond > 0
                                ? RateLimiterStrategy.perSecond(perSecond)
                                : RateLimiterStrategy.noOp(),
                        TypeInformation.of(Event.class));
        DataStream<Event> stream =
                env.fromSource(source, WatermarkStrategy.noWatermarks(), "events")
                        .setParallelism(1)
                        .uid("events");
        DataStream<Event> forwarded = deduplicated(kind, stream, window, events, keys);
        if (arguments.length == 5) {
            forwarded.filter(new Count()).uid("count").sinkTo(new DiscardingSink<>()).uid("nothing");
        } else {
            forwarded
                    .map(event -> Long.toString(event.number))
                    .sinkTo(
                            FileSink.forRowFormat(
                                            new Path(arguments[5]), new SimpleStringEncoder<String>())
                                    .withBucketAssigner(new BasePathBucketAssigner<>())
                                    .withRollingPolicy(OnCheckpointRollingPolicy.build())
                                    .build())
                    .uid("numbers");
        }
        env.execute("deduplicate by " + kind);
    }
}
