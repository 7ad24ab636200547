package lately.flink;

/** What became of a record. Each record ends in exactly one of these. */
public enum Outcome {
    /** Not seen within the window. */
    FRESH,
    /** Seen within the window. */
    DUPLICATE,
    /** Further behind the newest time than the lateness, so it was not judged. */
    LATE,
    /** With a time too far in the future to be believed, so it was not judged. */
    SKEWED,
    /** Without a key, so it was not judged. */
    MISSING_KEY;

    private static final Outcome[] ALL = values();

    /** The outcome with the number that the native library has for it. */
    static Outcome of(int number) {
        return ALL[number];
    }
}
