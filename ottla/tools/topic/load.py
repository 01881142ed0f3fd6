"""`ottla topic load TOPIC FILES…`: write rows of files as records with Spark."""

from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred
from ottla.client.admin.topics import describe_topic
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output, count_text
from ottla.tools.spark import needed
from ottla.tools.spark.tasks import watched

_SUFFIXES = {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

_access_of = deferred("ottla.tools.connection.client_config", "access_of")


@click.command("load")
@click.argument("topic", shell_complete=options.complete_topic)
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["csv", "json", "parquet"]),
    help="The file format; default: by the file names. JSON is one object per line.",
)
@click.option("--key", default="", metavar="COLUMN", help="The column for the record's key.")
@click.option("--value", default="", metavar="COLUMN",
              help="The column for the value; default: all columns, as a JSON object.")  # fmt: skip
@click.option("--timestamp", default="", metavar="COLUMN", help="The column for the timestamp; default: the current time.")  # fmt: skip
@click.option(
    "--records",
    "is_records",
    is_flag=True,
    help="Read files that `ottla topic export` wrote: key, value, timestamp, headers.",
)
@click.option("--schema", default="", metavar="COLUMNS", help="The columns, as in 'origin string, delay int'; default: read from the files (CSV: all strings).")  # fmt: skip
@click.option("--compression", type=click.Choice(_CODECS), default="none", show_default=True,
              help="The compression codec.")  # fmt: skip
@click.option("-X", "settings", multiple=True, metavar="NAME=VALUE", callback=options.parse_settings,
              help="An option of Spark's reader, as in -X sep=; or -X header=false; may be repeated.")  # fmt: skip
@options.connected
def command(brokers: Brokers, output: Output, **option_values: Any) -> None:
    """Load CSV, JSON lines or Parquet FILES into TOPIC, which must exist.

    Records are partitioned by key as in every Kafka client. FILES may be folders and patterns.

    \b
    ottla topic load flights flights.csv --key carrier
    ottla topic load events 'events/*.parquet' --key id --timestamp at --compression zstd
    """
    needed.check_installed()
    topic = describe_topic(brokers, option_values["topic"]).name
    files = option_values["files"]
    loading = needed.module("ottla.streams.spark.pipelines.topic_files")
    settings = loading.LoadSettings(
        topic=topic,
        format=option_values["file_format"] or _format_of(files),
        schema=option_values["schema"],
        key=option_values["key"],
        value=option_values["value"],
        timestamp=option_values["timestamp"],
        is_records=option_values["is_records"],
        options=option_values["settings"],
        compression=option_values["compression"],
    )
    spark = needed.open_session(f"load {topic}", {})
    with watched(f"Loading {topic}") as show:
        count = loading.load(spark, _access_of(brokers), files, settings, show)
    output.done(f"Loaded {count_text(count, 'record')} into {topic}.", topic=topic, records=count)


def _format_of(files: tuple[str, ...]) -> str:
    formats = {_SUFFIXES.get(name.rpartition(".")[2].lower()) for name in files}
    if len(formats) != 1 or None in formats:
        raise ConfigError("the file names do not show the format: choose it with --format")
    return str(formats.pop())
