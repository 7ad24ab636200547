package lately.flink.examples;

import java.nio.file.Paths;
import java.time.Duration;
import java.time.Instant;
import lately.flink.Deduplicated;
import lately.flink.Lately;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.OnCheckpointRollingPolicy;

/**
 * A folder of RFID reads in, clean files out: reads of a tag within five seconds of another one are dropped.
 *
 * <p>Started by {@code java}, it brings a local cluster along; by {@code flink run}, it is a job of that cluster. Lines are CSV
 * as in {@code examples/rfid.csv}: the timestamp first, the tag fifth, without quotes; headers are skipped.
 */
public final class CleanFolder {
    private CleanFolder() {}

    /** A line, with what it is judged by. */
    public static final class Read {
        public String line;
        public String epc;
        public Instant at;

        public Read() {}

        static Read of(String line) {
            String[] fields = line.split(",", 6);
            Read read = new Read();
            read.line = line;
            read.epc = fields[4];
            read.at = Instant.parse(fields[0]);
            return read;
        }
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 2) {
            System.err.println("usage: CleanFolder FOLDER-IN FOLDER-OUT");
            System.exit(2);
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.enableCheckpointing(5000);
        // Flink's own place for checkpoints, the heap of the job manager, takes 5 MB.
        Configuration storage = new Configuration();
        storage.setString(
                "execution.checkpointing.dir",
                Paths.get(arguments[1], "checkpoints").toAbsolutePath().toUri().toString());
        env.configure(storage);

        FileSource<String> files =
                FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(arguments[0]))
                        .build();
        DataStream<Read> reads =
                env.fromSource(files, WatermarkStrategy.noWatermarks(), "reads")
                        .filter(line -> !line.startsWith("timestamp,"))
                        .map(Read::of)
                        .returns(Read.class);

        Deduplicated<Read> found =
                Lately.<Read>within(Duration.ofSeconds(5))
                        .key(read -> read.epc)
                        .time(read -> read.at)
                        // Files are read at once, so records of one may come before older ones of another.
                        .lateness(Duration.ofMinutes(1))
                        .shards(16)
                        .expect(10_000)
                        .deduplicate(reads);
        found.operator().uid("lately");

        found.forwarded().map(read -> read.line).sinkTo(folder(arguments[1] + "/clean"));
        found.duplicates().map(read -> read.line).sinkTo(folder(arguments[1] + "/duplicates"));
        env.execute("clean reads");
    }

    private static FileSink<String> folder(String path) {
        return FileSink.forRowFormat(new Path(path), new SimpleStringEncoder<String>("UTF-8"))
                .withBucketAssigner(new BasePathBucketAssigner<>())
                .withRollingPolicy(OnCheckpointRollingPolicy.build())
                .build();
    }
}
