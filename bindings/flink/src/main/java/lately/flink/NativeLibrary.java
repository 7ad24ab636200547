package lately.flink;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/** Loads the native library that this jar carries. */
final class NativeLibrary {
    private NativeLibrary() {}

    /**
     * Loads the library for this machine. A library can be loaded by one class loader only, and each job of a cluster has its
     * own, so each takes its own copy of the file.
     */
    static void load() {
        load(System.getProperty("os.name"), System.getProperty("os.arch"));
    }

    static void load(String system, String processor) {
        String platform = platform(system, processor);
        String file = "/lately/native/" + platform + "/liblately_flink.so";
        try (InputStream library = NativeLibrary.class.getResourceAsStream(file)) {
            if (library == null) {
                throw new UnsatisfiedLinkError(
                        "lately: this jar has no native library for "
                                + platform
                                + "; build the jar on such a machine (bindings/flink/build)");
            }
            Path copy = Files.createTempFile("lately-flink-", ".so");
            try {
                Files.copy(library, copy, StandardCopyOption.REPLACE_EXISTING);
                System.load(copy.toAbsolutePath().toString());
            } finally {
                // A library that is loaded needs its file no more.
                Files.deleteIfExists(copy);
            }
        } catch (IOException error) {
            throw new IllegalStateException(
                    "lately: the native library could not be copied to "
                            + System.getProperty("java.io.tmpdir")
                            + "; name another folder with -Djava.io.tmpdir=…",
                    error);
        }
    }

    private static String platform(String system, String processor) {
        String name = processor.equals("amd64") ? "x86_64" : processor;
        return system.toLowerCase(Locale.ROOT).replace(" ", "") + "-" + name;
    }
}
