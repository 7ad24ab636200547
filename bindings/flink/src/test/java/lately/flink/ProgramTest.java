package lately.flink;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.configuration.Configuration;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** That the operator forwards what {@code lately dedup} forwards. */
public class ProgramTest {
    private static final Path EXAMPLE = Path.of("../../examples/rfid.csv");

    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    private String program;

    @Before
    public void findProgram() {
        program = System.getenv("LATELY_PROGRAM");
        if (program == null) {
            System.out.println("skipped: LATELY_PROGRAM does not say where the program is");
        }
        assumeTrue(program != null);
    }

    private static String start(String... words) throws Exception {
        Process process =
                new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String output = new String(process.getInputStream().readAllBytes());
        assertEquals(String.join(" ", words), 0, process.waitFor());
        return output;
    }

    @Test
    public void theSameEventsAreForwarded() throws Exception {
        long events = 30_000;
        Path file = folder.newFile().toPath();
        List<String> lines = new ArrayList<>(List.of("number,key,at"));
        for (long number = 0; number < events; number++) {
            Event event = Event.withWrongDates(number, 4_000);
            if (event.key != null) {
                lines.add(number + "," + event.key + "," + event.at());
            }
        }
        Files.write(file, lines);
        Set<Long> asked =
                start(program, "dedup", file.toString(), "--key", "key", "--time", "at", "--within", "5s")
                        .lines()
                        .skip(1)
                        .map(line -> Long.valueOf(line.split(",")[0]))
                        .collect(Collectors.toCollection(TreeSet::new));

        Lately<Event> lately =
                Lately.<Event>within(Duration.ofSeconds(5)).key(event -> event.key).time(Event::at);
        Run run = new Run(events, 4_000, lately);
        run.finish(run.start(new Configuration(), 2, Gate.open()));
        // In CSV no key is missing, so those records are not in the file.
        Set<Outcome> notForwarded = Set.of(Outcome.DUPLICATE, Outcome.MISSING_KEY);
        Set<Long> found = new TreeSet<>(run.outcomes.keySet());
        found.removeIf(number -> notForwarded.contains(run.outcomes.get(number)));
        Set<Long> missing = new TreeSet<>(asked);
        missing.removeAll(found);
        found.removeAll(asked);
        assertEquals("dropped by the operator only", Set.of(), missing);
        assertEquals("dropped by the program only", Set.of(), found);
        assertTrue("nothing was dropped", run.count(Outcome.DUPLICATE) > 0);
    }

    @Test
    public void theExampleCleansAFolder() throws Exception {
        File in = folder.newFolder();
        Files.copy(EXAMPLE, in.toPath().resolve("reads.csv"));
        File out = folder.newFolder();
        start("./clean-folder", in.toString(), out.toString());

        List<String> clean = read(out.toPath().resolve("clean"));
        List<String> all = read(out.toPath().resolve("duplicates"));
        all.addAll(clean);
        List<String> lines = Files.readAllLines(EXAMPLE);
        assertEquals(sorted(lines.subList(1, lines.size())), sorted(all));
        String asked =
                start(
                        program,
                        "dedup",
                        EXAMPLE.toString(),
                        "--key",
                        "epc",
                        "--time",
                        "timestamp",
                        "--within",
                        "5s",
                        "--lateness",
                        "1m");
        assertEquals(
                sorted(asked.lines().skip(1).collect(Collectors.toList())),
                sorted(clean));
    }

    private static List<String> sorted(List<String> lines) {
        return lines.stream().sorted().collect(Collectors.toList());
    }

    /** The lines of the finished files of a folder. */
    private static List<String> read(Path folder) throws Exception {
        List<String> lines = new ArrayList<>();
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.collect(Collectors.toList())) {
                if (!file.getFileName().toString().startsWith(".")) {
                    lines.addAll(Files.readAllLines(file));
                }
            }
        }
        return lines;
    }
}
