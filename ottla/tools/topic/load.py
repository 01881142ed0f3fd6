"""`ottla topic load TOPIC FILES…`: write rows of files as records, in this process or with
Spark.
"""

from collections.abc import Sequence
from typing import Any

import click

from ottla.base.loading import deferred, load_module
from ottla.client.admin.topics import Topic, describe_topic
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.files import needed as in_process
from ottla.tools.output import Output, count_text, note
from ottla.tools.spark import needed
from ottla.tools.spark.tasks import watched

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
@click.option("--schema", default="", metavar="COLUMNS", help="The columns, as in 'origin string, delay int'; default: read from the files (CSV: all strings). A row that does not fit is refused.")  # fmt: skip
@click.option("--bad-rows", default="", metavar="FILE",
              help="Write refused rows to this new file, unchanged, and load all others; default: the first one ends the load.")  # fmt: skip
@click.option("--compression", type=click.Choice(_CODECS), default="none", show_default=True,
              help="The compression codec.")  # fmt: skip
@click.option("-X", "settings", multiple=True, metavar="NAME=VALUE", callback=options.parse_settings,
              help="How CSV is written: sep, quote, escape, header, nullValue, as in -X sep=; or -X header=false; with --engine spark any option of its reader; may be repeated.")  # fmt: skip
@options.file_engine
@options.connected
def command(brokers: Brokers, output: Output, **option_values: Any) -> None:
    """Load CSV, JSON lines or Parquet FILES into TOPIC, which must exist.

    Records are partitioned by key as in every Kafka client. FILES may be folders and patterns. A
    line of JSON is loaded as it is. Rows that do not fit --schema, or that are too large for
    TOPIC, are refused, with file, line, column and reason.

    \b
    ottla topic load flights flights.csv --key carrier
    ottla topic load events 'events/*.parquet' --key id --timestamp at --compression zstd
    """
    by_spark = option_values["engine"] == "spark"
    (needed if by_spark else in_process).check_installed()
    if by_spark and option_values["bad_rows"]:
        raise click.UsageError("--bad-rows is not for --engine spark: omit one of them")
    topic = describe_topic(brokers, option_values["topic"])
    load = _load_with_spark if by_spark else _load_here
    count, refused = load(brokers, topic, option_values)
    loaded = count_text(count, "record")
    if refused:
        rows = count_text(refused, "row")
        verb = "was" if refused == 1 else "were"
        note(f"{rows} {verb} refused and written to {option_values['bad_rows']}, {loaded} loaded.")
    output.done(
        f"Loaded {loaded} into {topic.name}.", topic=topic.name, records=count, refused=refused
    )


def _load_here(brokers: Brokers, topic: Topic, options: dict[str, Any]) -> tuple[int, int]:
    loading = load_module("ottla.tools.files.loading")
    names = options["files"]
    found = load_module("ottla.tools.files.sources").find_files(names)
    file_format = _format(options, list(map(str, found)))
    if options["settings"] and file_format != "csv":
        raise click.UsageError(
            f"-X has options of CSV, not of {file_format}: omit it, or add --engine spark"
        )
    job = loading.LoadJob(
        topic=topic.name,
        partitions=len(topic.partitions),
        files=names,
        format=file_format,
        mapping=loading.LoadMapping(
            **{
                name: options[name]
                for name in ("key", "value", "timestamp", "is_records", "schema")
            }
        ),
        dialect=load_module("ottla.tools.files.csv_rows").dialect_of(options["settings"]),
        compression=options["compression"],
        bad_rows=options["bad_rows"],
    )
    result = loading.load_files(brokers, job)
    return result.records, result.refused


def _format(options: dict[str, Any], names: Sequence[str]) -> str:
    sources = load_module("ottla.tools.files.sources")
    return str(options["file_format"] or sources.format_of(names))


def _load_with_spark(brokers: Brokers, topic: Topic, options: dict[str, Any]) -> tuple[int, int]:
    loading = needed.module("ottla.streams.spark.pipelines.topic_files")
    settings = loading.LoadSettings(
        topic=topic.name,
        format=_format(options, options["files"]),
        options=options["settings"],
        **{
            name: options[name]
            for name in ("schema", "key", "value", "timestamp", "is_records", "compression")
        },
    )
    spark = needed.open_session(f"load {topic.name}", {})
    with watched(f"Loading {topic.name}") as show:
        count = loading.load(spark, _access_of(brokers), options["files"], settings, show)
    return int(count), 0
