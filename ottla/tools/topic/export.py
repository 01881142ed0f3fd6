"""`ottla topic export TOPIC FOLDER`: records become files, through Spark."""

import time
from pathlib import Path
from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.client.admin.topics import describe_topic
from ottla.client.brokers import Brokers
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.record.positions import Anchor, parse_position, resolve
from ottla.tools.spark import needed
from ottla.tools.spark.tasks import watched


@click.command("export")
@click.argument("topic", shell_complete=options.complete_topic)
@click.argument("folder")
@click.option("--format", "file_format", type=click.Choice(["parquet", "json", "csv"]),
              default="parquet", show_default=True, help="JSON is an object a line.")  # fmt: skip
@click.option("--from", "start", default="beginning", show_default=True, metavar="POSITION",
              help="beginning, an offset (42), the last so many of each partition (-10), or a time (@2026-02-14, @-1h).")  # fmt: skip
@click.option("--to", "end", default="end", show_default=True, metavar="POSITION",
              help="The same; records from there on stay out.")  # fmt: skip
@click.option("--partition", "-p", "partitions", type=click.IntRange(min=0), multiple=True,
              help="Only this partition; may be repeated.")  # fmt: skip
@click.option("--schema", default="", metavar="COLUMNS",
              help="Values are JSON: make columns of them, as in 'origin string, delay int'.")  # fmt: skip
@click.option("--bytes", "as_bytes", is_flag=True, help="Keys and values are bytes, not text (Parquet).")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace what is in the folder.")
@options.connected
def command(brokers: Brokers, output: Output, **words: Any) -> None:
    """Write the records of TOPIC to files in FOLDER: a file for each partition.

    Columns are key, value, partition, offset, timestamp and headers (not in CSV). Open and aborted
    transactions stay out.

    \b
    ottla topic export flights flights/
    ottla topic export flights flights/ --format csv --from @-1d --schema 'carrier string, delay int'
    """
    needed.check_installed()
    if words["as_bytes"] and words["file_format"] != "parquet":
        raise click.UsageError(
            "only Parquet holds bytes: leave --bytes out, or use --format parquet"
        )
    folder = Path(words["folder"])
    if folder.is_dir() and any(folder.iterdir()) and not words["overwrite"]:
        raise ConfigError(
            f"{folder} is not empty: name another folder, or replace it with --overwrite"
        )
    starts, ends = _range(brokers, words)
    exporting = needed.module("pipelines.topic_files")
    settings = exporting.ExportSettings(
        topic=words["topic"],
        folder=str(folder),
        format=words["file_format"],
        starts=starts,
        ends=ends,
        as_bytes=words["as_bytes"],
        schema=words["schema"],
        overwrite=words["overwrite"] or folder.is_dir(),
    )
    spark = needed.open_session(f"export {settings.topic}", {})
    with watched(f"Exporting {settings.topic}") as tell:
        count = exporting.export(spark, brokers.bootstrap, settings, tell)
    output.done(
        f"{count} records of {settings.topic} are in {folder}.",
        topic=settings.topic,
        folder=str(folder),
        records=count,
        offsets={str(key[1]): [starts[key], ends[key]] for key in sorted(starts)},
    )


def _range(brokers: Brokers, words: dict[str, Any]) -> tuple[dict[Any, int], dict[Any, int]]:
    """Return first and last offsets of the partitions that are wanted."""
    topic = describe_topic(brokers, words["topic"])
    known = [each.partition for each in topic.partitions]
    unknown = set(words["partitions"]) - set(known)
    if unknown:
        raise ConfigError(f"Topic {topic.name!r} has no partition {min(unknown)}")
    keys = [(topic.name, number) for number in known if number in (words["partitions"] or known)]
    now_ms = time.time_ns() // 1_000_000
    try:
        start, end = (parse_position(words[name], now_ms) for name in ("start", "end"))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if Anchor.STORED in (start.anchor, end.anchor):
        raise click.UsageError("stored offsets belong to a group: name an offset or a time")
    starts, ends = resolve(brokers, keys, start), resolve(brokers, keys, end)
    return starts, {key: max(ends[key], starts[key]) for key in keys}
