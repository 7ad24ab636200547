package lately.flink;

import java.io.Serializable;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/** The terms of a filter, by the names that {@code lately dedup} has for them. */
final class Terms implements Serializable {
    private static final long serialVersionUID = 1;

    private final LinkedHashMap<String, String> values;

    Terms() {
        this(new LinkedHashMap<>());
    }

    private Terms(LinkedHashMap<String, String> values) {
        this.values = values;
    }

    /** The same terms with another value of one. */
    Terms with(String name, String value) {
        LinkedHashMap<String, String> values = new LinkedHashMap<>(this.values);
        // Each term is a line of the text that the library reads.
        values.put(name, value.replace('\n', ' '));
        return new Terms(values);
    }

    Terms with(String name, Duration value) {
        return with(name, value.toNanos() + "ns");
    }

    /** A line for each. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        for (Map.Entry<String, String> value : values.entrySet()) {
            text.append(value.getKey()).append('=').append(value.getValue()).append('\n');
        }
        return text.toString();
    }
}
