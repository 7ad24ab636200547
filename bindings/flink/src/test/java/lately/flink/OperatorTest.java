package lately.flink;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.time.Duration;
import java.util.Map;
import java.util.Set;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** The operator in a cluster, against a program that remembers every sighting. */
public class OperatorTest {
    private static final long EVENTS = 30_000;
    private static final long WINDOW = 5_000;

    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    private static Lately<Event> lately() {
        return Lately.<Event>within(Duration.ofMillis(WINDOW))
                .key(event -> event.key)
                .time(Event::at)
                .shards(16);
    }

    private static void assertExact(Run run, Law law) throws Exception {
        assertEquals(Map.of(), run.faults(law));
        assertEquals(Set.of(), run.contradictions);
        assertEquals(EVENTS, run.outcomes.size());
        for (Outcome outcome : Outcome.values()) {
            assertTrue(outcome + " was not tried", run.count(outcome) > 0);
        }
    }

    @Test
    public void everyRecordEndsAsTheLawSays() throws Exception {
        Run run = new Run(EVENTS, 6_000, lately());
        run.finish(run.start(new Configuration(), 2, Gate.open()));
        assertExact(run, new Law(WINDOW, WINDOW, true, 16));
    }

    @Test
    public void withALongLatenessAndRenewalOnFreshToo() throws Exception {
        Lately<Event> lately = lately().lateness(Duration.ofSeconds(20)).renewOnFresh();
        Run run = new Run(EVENTS, 24_000, lately);
        run.finish(run.start(new Configuration(), 2, Gate.open()));
        assertExact(run, new Law(WINDOW, 20_000, false, 16));
    }

    @Test
    public void aFailureChangesNoAnswer() throws Exception {
        Configuration configuration = new Configuration();
        configuration.setString("execution.checkpointing.interval", "1 s");
        configuration.setString(
                "execution.checkpointing.dir", folder.newFolder().toURI().toString());
        configuration.setString("restart-strategy.type", "fixed-delay");
        configuration.setString("restart-strategy.fixed-delay.attempts", "1");
        configuration.setString("restart-strategy.fixed-delay.delay", "0 s");
        Run run = new Run(EVENTS, 6_000, lately());
        // A checkpoint is made at half of the events, or before; then come some that are repeated.
        run.untilFailure.set(EVENTS / 2 + 3_000);
        run.finish(run.start(configuration, 2, Gate.untilCheckpointAfter(EVENTS / 2)));
        assertTrue("nothing was repeated", run.repeated.get() > 0);
        assertExact(run, new Law(WINDOW, WINDOW, true, 16));
    }

    @Test
    public void savepointsMoveBetweenParallelismsInMemory() throws Exception {
        rescale("hashmap");
    }

    @Test
    public void savepointsMoveBetweenParallelismsInRocksDb() throws Exception {
        rescale("rocksdb");
    }

    private void rescale(String backend) throws Exception {
        Run run = new Run(EVENTS, 6_000, lately());
        Configuration configuration = new Configuration();
        configuration.setString("state.backend.type", backend);
        configuration.setString(
                "execution.checkpointing.dir", folder.newFolder().toURI().toString());
        JobClient job = run.start(configuration, 2, Gate.after(EVENTS / 3));
        for (int stage = 1; stage <= 2; stage++) {
            String savepoint = run.stop(job, EVENTS * stage / 3, folder.newFolder().toPath());
            configuration.setString("execution.state-recovery.path", savepoint);
            int parallelism = stage == 1 ? 1 : 2;
            job = run.start(configuration, parallelism, stage == 1 ? Gate.after(EVENTS / 3) : Gate.open());
        }
        run.finish(job);
        assertExact(run, new Law(WINDOW, WINDOW, true, 16));
    }

    @Test
    public void metricsCountEveryRecordAndTheMemory() throws Exception {
        Reporter.clear();
        Configuration configuration = new Configuration();
        configuration.setString("metrics.reporter.test.factory.class", Reporter.class.getName());
        long limit = 64 << 20;
        Run run = new Run(EVENTS, 6_000, lately().memory(limit));
        JobClient job = run.start(configuration, 2, Gate.after(EVENTS / 2));
        long end = System.nanoTime() + Duration.ofMinutes(3).toNanos();
        while (run.outcomes.size() < EVENTS / 2 && System.nanoTime() < end) {
            Thread.sleep(20);
        }
        for (Outcome outcome : Outcome.values()) {
            assertEquals(run.count(outcome), Reporter.sum(outcome.name().toLowerCase()));
        }
        assertEquals(16, Reporter.sum("filters"));
        long memory = Reporter.sum("memory");
        assertTrue("memory: " + memory, memory > 16 * 1024 && memory <= limit);
        assertEquals(0, Reporter.sum("forgotten"));
        job.cancel().get();
    }
}
