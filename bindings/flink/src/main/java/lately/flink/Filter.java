package lately.flink;

/** A filter of the native library: its memory is outside of Java's heap, and is given back by {@link #close}. */
final class Filter implements AutoCloseable {
    static {
        NativeLibrary.load();
    }

    /** Stands for a time that is missing. */
    static final long UNTIMED = Long.MIN_VALUE;

    private final long number;

    private Filter(long number) {
        this.number = number;
    }

    /** A filter that has seen nothing. Throws {@link IllegalArgumentException} for terms that cannot be kept. */
    static Filter of(Terms terms) {
        return new Filter(open(terms.toString()));
    }

    /** A filter that was saved. Throws {@link IllegalStateException} for a state of other terms, or a damaged one. */
    static Filter resumed(Terms terms, byte[] state) {
        return new Filter(resume(terms.toString(), state));
    }

    /** Judges a record, and remembers its key. The time is in nanoseconds since 1970. */
    Outcome observe(byte[] key, long time) {
        return Outcome.of(observe(number, key, time));
    }

    /** Its state, as {@code lately dedup --state} has it in a file. */
    byte[] save() {
        return save(number);
    }

    /** What it takes, and what it had to give up. */
    Numbers numbers() {
        return new Numbers(numbers(number));
    }

    @Override
    public void close() {
        close(number);
    }

    /** The numbers of a filter, or of several. */
    static final class Numbers {
        /** Bytes of its tables, outside of Java's heap. */
        final long memory;
        /** Keys forgotten before their time, to make room: duplicates of them may pass. */
        final long forgotten;
        /** Keys judged but not remembered, for lack of room: duplicates of them may pass. */
        final long refused;

        private Numbers(long[] numbers) {
            memory = numbers[0];
            forgotten = numbers[1];
            refused = numbers[2];
        }
    }

    private static native long open(String terms);

    private static native long resume(String terms, byte[] state);

    private static native void close(long number);

    private static native int observe(long number, byte[] key, long time);

    private static native byte[] save(long number);

    private static native long[] numbers(long number);
}
