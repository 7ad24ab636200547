package lately.flink;

import java.io.Serializable;

/**
 * Finds a part of a record's key: a {@code String}, a {@code byte[]}, or a whole number ({@code Byte}, {@code Short},
 * {@code Integer}, {@code Long}, {@code BigInteger}), which stands for its decimal text as in a CSV file. {@code null} is a
 * missing key.
 */
@FunctionalInterface
public interface KeyOf<T> extends Serializable {
    /** The part of the key of {@code record}. */
    Object of(T record) throws Exception;
}
