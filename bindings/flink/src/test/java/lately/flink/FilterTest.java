package lately.flink;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.junit.Test;

/** The native filter, and what is built around it, without a cluster. */
public class FilterTest {
    private static final long SECOND = 1_000_000_000L;
    private static final long NOON = 1_714_564_800 * SECOND;

    private static Lately<Object> lately(long seconds) {
        return Lately.within(Duration.ofSeconds(seconds)).key(key -> key);
    }

    private static byte[] key(Object... parts) throws Exception {
        return new Key<>(List.<KeyOf<Object[]>>of(record -> record[0])).bytes(parts);
    }

    @Test
    public void aStateResumesWithWhatItRemembers() {
        Terms terms = lately(10).shardTerms();
        byte[] state;
        try (Filter filter = Filter.of(terms)) {
            assertEquals(Outcome.FRESH, filter.observe("a".getBytes(UTF_8), NOON));
            assertEquals(Outcome.DUPLICATE, filter.observe("a".getBytes(UTF_8), NOON + 9 * SECOND));
            state = filter.save();
        }
        try (Filter filter = Filter.resumed(terms, state)) {
            assertEquals(Outcome.DUPLICATE, filter.observe("a".getBytes(UTF_8), NOON + 19 * SECOND));
            assertEquals(Outcome.FRESH, filter.observe("a".getBytes(UTF_8), NOON + 40 * SECOND));
            assertEquals(Outcome.LATE, filter.observe("b".getBytes(UTF_8), NOON + 29 * SECOND));
            assertEquals(Outcome.FRESH, filter.observe("b".getBytes(UTF_8), Filter.UNTIMED));
        }
    }

    @Test
    public void whatCannotBeKeptIsRefusedInWords() {
        assertRefused("within: ", lately(0).shardTerms());
        assertRefused("fpr: ", lately(10).fpr(2).shardTerms());
        assertRefused("memory: ", lately(10).memory(1000).shardTerms());
        assertRefused("colour: no such term", new Terms().with("colour", "red"));
        IllegalStateException error =
                assertThrows(IllegalStateException.class, () -> lately().deduplicate(null));
        assertTrue(error.getMessage(), error.getMessage().contains("where the key is"));
    }

    private static Lately<Object> lately() {
        return Lately.within(Duration.ofSeconds(1));
    }

    private static void assertRefused(String beginning, Terms terms) {
        IllegalArgumentException error =
                assertThrows(IllegalArgumentException.class, () -> Filter.of(terms));
        assertTrue(error.getMessage(), error.getMessage().startsWith(beginning));
    }

    @Test
    public void aStateOfOtherTermsOrDamagedIsRefusedInWords() {
        byte[] state;
        try (Filter filter = Filter.of(lately(10).shardTerms())) {
            state = filter.save();
        }
        assertState("window: saved 10s, asked 20s", lately(20).shardTerms(), state);
        assertState("shards: saved 128, asked 64", lately(10).shards(64).shardTerms(), state);
        state[state.length / 2] ^= 1;
        assertState("", lately(10).shardTerms(), state);
        assertState("", lately(10).shardTerms(), new byte[0]);
    }

    private static void assertState(String text, Terms terms, byte[] state) {
        IllegalStateException error =
                assertThrows(IllegalStateException.class, () -> Filter.resumed(terms, state));
        assertTrue(error.getMessage(), error.getMessage().contains(text));
    }

    @Test
    public void aClosedFilterIsAnErrorNotACrash() {
        Filter closed = Filter.of(lately(10).shardTerms());
        closed.close();
        closed.close();
        try (Filter other = Filter.of(lately(10).shardTerms())) {
            assertThrows(IllegalStateException.class, () -> closed.observe(new byte[] {1}, NOON));
            assertThrows(IllegalStateException.class, closed::save);
            assertEquals(Outcome.FRESH, other.observe(new byte[] {1}, NOON));
        }
    }

    @Test
    public void memoryStaysWithinItsLimitAndWhatIsForgottenIsCounted() {
        long limit = 8 << 20;
        Lately<Object> lately = lately(3600).shards(8).memory(limit);
        try (Filter filter = Filter.of(lately.shardTerms())) {
            for (long i = 0; i < 300_000; i++) {
                filter.observe(Long.toString(i).getBytes(UTF_8), NOON + i * 1000);
                if (i % 10_000 == 0) {
                    assertTrue(filter.numbers().memory <= limit / 8);
                }
            }
            assertTrue(filter.numbers().forgotten > 0);
            assertTrue(filter.numbers().memory <= limit / 8);
        }
    }

    @Test
    public void keysAreTheBytesThatTheProgramReads() throws Exception {
        assertArrayEquals("17".getBytes(UTF_8), key(17));
        assertArrayEquals(key("17"), key(17L));
        assertArrayEquals("é".getBytes(UTF_8), key("é"));
        assertNull(key((Object) null));
        assertThrows(IllegalArgumentException.class, () -> key(1.5));
        Key<String[]> two = new Key<>(List.of(record -> record[0], record -> record[1]));
        assertArrayEquals(
                new byte[] {1, 0, 0, 0, 0, 0, 0, 0, 'a', 2, 0, 0, 0, 0, 0, 0, 0, 'b', 'c'},
                two.bytes(new String[] {"a", "bc"}));
        assertNull(two.bytes(new String[] {"a", null}));
    }

    @Test
    public void shardsLieEvenlyInTheKeyGroups() throws Exception {
        Shard<String> shard = new Shard<>(new Key<>(List.of(record -> record)), 128, 128);
        Set<Integer> groups = new HashSet<>();
        for (int i = 0; i < 10_000; i++) {
            groups.add(KeyGroupRangeAssignment.assignToKeyGroup(shard.getKey("tag " + i), 128));
        }
        assertEquals(128, groups.size());
    }

    @Test
    public void aPlatformThatIsNotInTheJarIsNamed() {
        UnsatisfiedLinkError error =
                assertThrows(
                        UnsatisfiedLinkError.class,
                        () -> NativeLibrary.load("Mac OS X", "aarch64"));
        assertEquals(
                "lately: this jar has no native library for macosx-aarch64; build the jar on such a machine"
                        + " (bindings/flink/build)",
                error.getMessage());
    }
}
