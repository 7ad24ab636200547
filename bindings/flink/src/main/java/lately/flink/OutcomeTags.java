package lately.flink;

import java.io.Serializable;
import java.util.Locale;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.util.OutputTag;

/** The side outputs, one for each outcome but the first, which is the main output. */
final class OutcomeTags<T> implements Serializable {
    private static final long serialVersionUID = 1;

    private final OutputTag<T>[] tags;

    @SuppressWarnings({"unchecked", "rawtypes"})
    OutcomeTags(TypeInformation<T> type) {
        Outcome[] all = Outcome.values();
        tags = new OutputTag[all.length];
        for (Outcome outcome : all) {
            tags[outcome.ordinal()] =
                    new OutputTag<>("lately-" + outcome.name().toLowerCase(Locale.ROOT), type);
        }
    }

    OutputTag<T> of(Outcome outcome) {
        return tags[outcome.ordinal()];
    }
}
