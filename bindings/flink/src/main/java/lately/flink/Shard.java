package lately.flink;

import java.util.Arrays;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.util.MathUtils;

/**
 * The shard of a record: what its stream is keyed by. There are a fixed number of shards, whatever the parallelism is, and
 * each has a filter, which moves with Flink's key groups.
 */
final class Shard<T> implements KeySelector<T, Integer> {
    private static final long serialVersionUID = 1;

    private final Key<T> key;
    private final int[] names;

    /** So many shards, which lie evenly in the key groups of an operator with this maximum parallelism. */
    Shard(Key<T> key, int shards, int maxParallelism) {
        this.key = key;
        this.names = names(shards, maxParallelism);
    }

    /** Numbers whose key groups are as far apart as can be, as Flink would scatter 0, 1, 2, … by their hash. */
    private static int[] names(int shards, int maxParallelism) {
        int[] names = new int[shards];
        int next = 0;
        // The search for each continues after the one before, so all of them differ.
        for (int shard = 0; shard < shards; shard++) {
            int group = (int) ((long) shard * maxParallelism / shards);
            while (KeyGroupRangeAssignment.assignToKeyGroup(next, maxParallelism) != group) {
                next++;
            }
            names[shard] = next++;
        }
        return names;
    }

    @Override
    public Integer getKey(T record) throws Exception {
        byte[] bytes = key.bytes(record);
        // Records without a key are not judged, so it does not matter where.
        int hash = bytes == null ? 0 : MathUtils.murmurHash(Arrays.hashCode(bytes));
        return names[hash % names.length];
    }
}
