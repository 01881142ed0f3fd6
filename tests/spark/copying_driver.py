"""A driver for tests that kill it: it copies one topic to another exactly once.

`python -m tests.spark.copying_driver BOOTSTRAP SOURCE TARGET CHECKPOINT`; a query that fails is
restarted.
"""

import sys

from pyspark.errors import PySparkException

from ottla.streams.spark import session
from ottla.streams.spark.session.class_archive import SHORT

_SETTINGS = {
    "spark.driver.extraJavaOptions": SHORT,
    # A task whose worker is killed is retried a few times.
    "spark.master": "local[2,4]",
}
RECORDS_PER_BATCH = 1000


def main(bootstrap: str, source: str, target: str, checkpoint: str) -> None:
    """Copy the topic."""
    spark = session("copying", cores=2, settings=_SETTINGS)
    rows = (
        spark.readStream.format("ottla")
        .option("bootstrap", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(RECORDS_PER_BATCH))
        .load()
        .select("key", "value")
    )
    while True:
        try:
            query = (
                rows.writeStream.format("ottla")
                .option("bootstrap", bootstrap)
                .option("topic", target)
                .option("processingGuarantee", "exactly_once")
                .option("checkpointLocation", checkpoint)
                .start()
            )
            query.awaitTermination()
        except PySparkException as error:
            print(f"again, after: {str(error)[:2000]}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
