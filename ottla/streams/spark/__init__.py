"""Topics as PySpark data frames: `format("ottla")`, for batch and streaming queries, without a JAR.

    from ottla.streams.spark import register, session

    spark = session()                      # or register(spark) for a session of your own
    flights = (spark.readStream.format("ottla")
               .option("kafka.bootstrap.servers", "127.0.0.1:9092")
               .option("subscribe", "flights").load())

Columns and options are the same as in Spark's own Kafka connector (`connector/options.py` lists
them). Records become Arrow columns without creating a Python object for each record.

A topology of `ottla.streams` gives the same results here as in the test driver, record for record:

    from ottla.streams.spark import start

    settings = {"application_id": "app", "bootstrap": "127.0.0.1:9092", "checkpoint": "state"}
    with start(topology, spark, **settings) as query:
        query.await_termination()

Output is written exactly once if the query's settings contain `sink_options={"processingGuarantee":
"exactly_once"}`. By default it is written at least once: a micro-batch that Spark repeats writes
its records again.

Column expressions run in the JVM if the result is guaranteed to be the same as in Python
(`catalyst/steps.py`).
"""

try:
    from ottla.streams.spark.connector.source import OttlaSource
    from ottla.streams.spark.connector.workers import freeze_objects
    from ottla.streams.spark.query.query import StreamsQuery, start
    from ottla.streams.spark.session.session import register, session
except ModuleNotFoundError as error:
    if (error.name or "").startswith("ottla"):
        raise
    raise ModuleNotFoundError(
        f"{__name__} needs {error.name}: pip install 'ottla[spark]'", name=error.name
    ) from error

# All modules are loaded now: in a worker of Spark, exclude their objects from garbage collection.
freeze_objects()

__all__ = ["OttlaSource", "StreamsQuery", "register", "session", "start"]
