package lately.flink;

import java.io.Serializable;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** The bytes of a record's key, which are those that the program reads from a file (docs/format.md). */
final class Key<T> implements Serializable {
    private static final long serialVersionUID = 1;

    @SuppressWarnings("serial") // The lists that it is made with can be serialized.
    private final List<KeyOf<T>> parts;

    Key(List<KeyOf<T>> parts) {
        this.parts = parts;
    }

    /** The bytes of the key; {@code null} where it, or a part of it, is missing. */
    byte[] bytes(T record) throws Exception {
        if (parts.size() == 1) {
            return text(parts.get(0).of(record));
        }
        byte[][] texts = new byte[parts.size()][];
        int length = 0;
        for (int i = 0; i < texts.length; i++) {
            texts[i] = text(parts.get(i).of(record));
            if (texts[i] == null) {
                return null;
            }
            length += Long.BYTES + texts[i].length;
        }
        ByteBuffer joined = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
        Arrays.stream(texts).forEach(text -> joined.putLong(text.length).put(text));
        return joined.array();
    }

    private static byte[] text(Object part) {
        if (part == null) {
            return null;
        }
        if (part instanceof String) {
            return ((String) part).getBytes(StandardCharsets.UTF_8);
        }
        if (part instanceof byte[]) {
            return (byte[]) part;
        }
        if (part instanceof Long
                || part instanceof Integer
                || part instanceof Short
                || part instanceof Byte
                || part instanceof BigInteger) {
            return part.toString().getBytes(StandardCharsets.US_ASCII);
        }
        throw new IllegalArgumentException(
                "a key is a String, a byte[], a whole number or null, not "
                        + part.getClass().getName()
                        + ": give it as text");
    }
}
