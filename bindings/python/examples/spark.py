"""A folder of RFID reads in, clean files out: reads of a tag within five seconds of another one are dropped.

    python bindings/python/examples/spark.py FOLDER-IN FOLDER-OUT

It brings a local cluster of Spark along. Run again, it goes on where it ended, with the files that have come
since. Files are CSV, as examples/rfid.csv.
"""

import os
import sys

import lately.spark
from pyspark.sql import SparkSession

if len(sys.argv) != 3:
    sys.exit("usage: spark.py FOLDER-IN FOLDER-OUT")
incoming, outgoing = sys.argv[1:]

# Workers need the Python that has Lately.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = (
    SparkSession.builder.master("local[2]")
    .appName("clean reads")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.log.level", "WARN")
    .config("spark.sql.shuffle.partitions", "2")
    .config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    .getOrCreate()
)

reads = (
    spark.readStream.schema("timestamp timestamp, reader string, antenna int, rssi int, epc string, location string")
    .option("header", True)
    .option("maxFilesPerTrigger", 10)
    .csv(incoming)
)
clean = lately.spark.dedup(reads, key="epc", time="timestamp", within="5s", shards=16)

(
    clean.writeStream.format("csv")
    .option("header", True)
    .option("checkpointLocation", os.path.join(outgoing, "checkpoint"))
    # Until it is stopped: .trigger(processingTime="5 seconds")
    .trigger(availableNow=True)
    .start(outgoing)
    .awaitTermination()
)
spark.stop()
