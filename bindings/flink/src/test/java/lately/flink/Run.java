package lately.flink;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource.NumberSequenceSplit;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/** Jobs over the events of the tests, in a cluster within this process, and what became of each event. */
final class Run {
    /** Nothing here is a test of how fast a machine is. */
    private static final Duration PATIENCE = Duration.ofMinutes(3);

    /** Operators are copied to where they run, so they find their run by its number. */
    private static final Map<Long, Run> ALL = new ConcurrentHashMap<>();

    private static final AtomicLong NEXT = new AtomicLong();

    private final long run = NEXT.incrementAndGet();
    private final long events;
    private final long disorder;
    private final Lately<Event> lately;

    /** What became of each event. */
    final Map<Long, Outcome> outcomes = new ConcurrentHashMap<>();
    /** Events that had two outcomes. */
    final Set<Long> contradictions = ConcurrentHashMap.newKeySet();
    /** How often an event had the same outcome again, as it was repeated after a failure. */
    final AtomicLong repeated = new AtomicLong();
    /** How many more events pass before the job fails; never, if it is negative. */
    final AtomicLong untilFailure = new AtomicLong(-1);
    private final AtomicLong passed = new AtomicLong();

    Run(long events, long disorder, Lately<Event> lately) {
        this.events = events;
        this.disorder = disorder;
        this.lately = lately;
        ALL.put(run, this);
    }

    /** Starts a job over what no earlier job has read. */
    JobClient start(
            Configuration configuration,
            int parallelism,
            RateLimiterStrategy<NumberSequenceSplit> gate)
            throws Exception {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, configuration);
        long run = this.run;
        long disorder = this.disorder;
        DataGeneratorSource<Event> source =
                new DataGeneratorSource<>(
                        number -> Event.withWrongDates(number, disorder),
                        events,
                        gate,
                        TypeInformation.of(Event.class));
        DataStream<Event> stream =
                env.fromSource(source, WatermarkStrategy.noWatermarks(), "events")
                        .setParallelism(1)
                        .uid("events")
                        .map(event -> ALL.get(run).passed(event))
                        .returns(Event.class)
                        .setParallelism(1);
        Deduplicated<Event> found = lately.deduplicate(stream);
        found.operator().uid("lately");
        for (Outcome outcome : Outcome.values()) {
            found.only(outcome)
                    .map(event -> ALL.get(run).note(event, outcome))
                    .returns(Event.class)
                    .sinkTo(new DiscardingSink<>());
        }
        return env.executeAsync();
    }

    private Event passed(Event event) {
        if (untilFailure.get() >= 0 && untilFailure.decrementAndGet() < 0) {
            // What has passed gets through, so that it is repeated after the failure.
            long end = System.nanoTime() + PATIENCE.toNanos();
            while (outcomes.size() < passed.get() && System.nanoTime() < end) {
                LockSupport.parkNanos(10_000_000);
            }
            throw new IllegalStateException("the failure that the test asks for");
        }
        passed.incrementAndGet();
        return event;
    }

    private Event note(Event event, Outcome outcome) {
        Outcome before = outcomes.putIfAbsent(event.number, outcome);
        if (before != null && before != outcome) {
            contradictions.add(event.number);
        } else if (before != null) {
            repeated.incrementAndGet();
        }
        return event;
    }

    void finish(JobClient job) throws Exception {
        job.getJobExecutionResult().get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    }

    /** Waits for so many outcomes, then stops the job: where its savepoint is. */
    String stop(JobClient job, long after, Path folder) throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (outcomes.size() < after) {
            if (System.nanoTime() > end) {
                throw new TimeoutException(outcomes.size() + " of " + after + " events were judged");
            }
            Thread.sleep(20);
        }
        return job.stopWithSavepoint(false, folder.toString(), SavepointFormatType.CANONICAL)
                .get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    }

    /** Where outcomes are not those of the law, by number of the event. */
    Map<Long, String> faults(Law law) throws Exception {
        Map<Long, String> faults = new TreeMap<>();
        for (long number = 0; number < events; number++) {
            Outcome asked = law.judge(Event.withWrongDates(number, disorder));
            Outcome found = outcomes.get(number);
            if (asked != found) {
                faults.put(number, "asked " + asked + ", found " + found);
            }
        }
        return faults;
    }

    /** How many events have this outcome. */
    long count(Outcome outcome) {
        return outcomes.values().stream().filter(outcome::equals).count();
    }
}
