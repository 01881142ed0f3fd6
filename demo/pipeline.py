"""The streaming pipeline: flights and their delays by airport and hour, and by airline and day.

One query in append mode: a window's totals leave once, when the watermark has passed its end.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming import StreamingQuery

from demo.events import AIRLINE, AIRPORT

FLIGHTS, AIRLINES, TOTALS = "flights", "airlines", "totals"
# Each partition holds its carriers' flights in order, but a micro-batch takes from one partition a
# little more of the year than from another: so far may they be apart.
WATERMARK_DAYS = 31
_RECORDS_A_BATCH = 60_000
_EVENT = "carrier string, origin string, dep_delay int"


def read_flights(spark: SparkSession, bootstrap: str) -> DataFrame:
    """Return the stream of flights; its event time is the record's timestamp."""
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": FLIGHTS,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(_RECORDS_A_BATCH),
    }
    records = spark.readStream.format("ottla").options(**options).load()
    parsed = records.select(
        sql.col("timestamp").alias("scheduled"),
        sql.from_json(sql.col("value").cast("string"), _EVENT).alias("event"),
    )
    flights = parsed.select("scheduled", "event.*")
    return flights.withWatermark("scheduled", f"{WATERMARK_DAYS} days")


def read_airlines(spark: SparkSession, bootstrap: str) -> DataFrame:
    """Return the airlines' topic as it is now: carrier and airline."""
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": AIRLINES}
    records = spark.read.format("ottla").options(**options).load()
    return records.select(
        sql.col("key").cast("string").alias("carrier"),
        sql.col("value").cast("string").alias("airline"),
    )


def _total(flights: DataFrame, kind: str, column: str, length: str) -> DataFrame:
    """Return flights, departures and their summed delay by name and window."""
    grouped = flights.groupBy(sql.window("scheduled", length), sql.col(column).alias("name"))
    totals = grouped.agg(
        sql.count("*").alias("flights"),
        sql.count("dep_delay").alias("departed"),
        sql.coalesce(sql.sum("dep_delay"), sql.lit(0)).alias("delay"),
        sql.avg("dep_delay").alias("mean_delay"),
    )
    return totals.select(
        sql.lit(kind).alias("kind"),
        "name",
        sql.unix_timestamp("window.start").alias("start"),
        "flights",
        "departed",
        "delay",
        "mean_delay",
    )


def totals(flights: DataFrame, airlines: DataFrame) -> DataFrame:
    """Return the totals of both kinds as records: the name as key, the rest as JSON."""
    by_airport = _total(flights, AIRPORT, "origin", "1 hour")
    named = flights.join(sql.broadcast(airlines), "carrier")
    both = by_airport.unionByName(_total(named, AIRLINE, "airline", "1 day"))
    return both.select(
        sql.col("name").alias("key"), sql.to_json(sql.struct(*both.columns)).alias("value")
    )


def start(spark: SparkSession, bootstrap: str, checkpoint: str) -> StreamingQuery:
    """Start the query; it ends when all flights that are there now have been read."""
    records = totals(read_flights(spark, bootstrap), read_airlines(spark, bootstrap))
    options: Mapping[str, str] = {
        "kafka.bootstrap.servers": bootstrap,
        "topic": TOTALS,
        "checkpointLocation": checkpoint,
    }
    writer = records.writeStream.format("ottla").options(**options).queryName("flights")
    return writer.trigger(availableNow=True).start()
