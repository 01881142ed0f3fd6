"""Topics as PySpark data frames: `format("ottla")`, in batches and in streams, without a jar.

    from ottla.streams.spark import register, session

    spark = session()                      # or register(spark) for a session of your own
    flights = (spark.readStream.format("ottla")
               .option("kafka.bootstrap.servers", "127.0.0.1:9092")
               .option("subscribe", "flights").load())

Columns and options are those of Spark's own Kafka connector (`options.py` lists them). Records become
Arrow columns without a Python object each.

A topology of `ottla.streams` runs here as it runs in the test driver, record for record:

    from ottla.streams.spark import start

    with start(topology, spark, application_id="app", bootstrap="127.0.0.1:9092", checkpoint="state") as query:
        query.await_termination()

What it writes is written exactly once with `sink_options={"processingGuarantee": "exactly_once"}` among the query's
settings; without, a micro-batch that is run again is written again.

Column expressions run in the JVM where they give what they give in Python (`column_steps.py`).
"""

from ottla.streams.spark.connector.source import OttlaSource
from ottla.streams.spark.connector.workers import settle
from ottla.streams.spark.query.query import StreamsQuery, start
from ottla.streams.spark.session.session import register, session

# All of it is loaded now, in whatever process this is.
settle()

__all__ = ["OttlaSource", "StreamsQuery", "register", "session", "start"]
