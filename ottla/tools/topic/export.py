"""`ottla topic export TOPIC FOLDER`: write records to files, in this process or with Spark."""

import time
from pathlib import Path
from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred, load_module
from ottla.client.admin.topics import describe_topic
from ottla.client.brokers import Brokers
from ottla.operations.offsets.positions import Anchor, parse_position, resolve, resolve_end
from ottla.tools import options
from ottla.tools.files import needed as in_process
from ottla.tools.output import Output, count_text, note
from ottla.tools.spark import needed
from ottla.tools.spark.tasks import watched
from ottla.tools.topic_partitions import check_partition

_access_of = deferred("ottla.tools.connection.client_config", "access_of")


@click.command("export")
@click.argument("topic", shell_complete=options.complete_topic)
@click.argument("folder")
@click.option("--format", "file_format", type=click.Choice(["parquet", "json", "csv"]),
              default="parquet", show_default=True, help="The file format; JSON is one object per line.")  # fmt: skip
@click.option("--from", "start", default="beginning", show_default=True, metavar="POSITION",
              help="Start position: beginning, an offset (42), -10 (the last ten of each partition), or a time (@2026-02-14, @-1h).")  # fmt: skip
@click.option("--to", "end", default="end", show_default=True, metavar="POSITION",
              help="End position (exclusive), in the same form.")  # fmt: skip
@click.option("--partition", "-p", "partitions", type=options.number_of_partition, multiple=True,
              help="Export only this partition; may be repeated.")  # fmt: skip
@click.option("--schema", default="", metavar="COLUMNS",
              help="Parse JSON values into these columns, as in 'origin string, delay int'.")  # fmt: skip
@click.option("--bytes", "as_bytes", is_flag=True,
              help="Write keys and values as bytes, not text: binary columns in Parquet, base64 in the columns key_base64 and value_base64 of JSON and CSV.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the contents of the folder.")
@options.file_engine
@options.connected
def command(brokers: Brokers, output: Output, **option_values: Any) -> None:
    """Write the committed records of TOPIC to files in FOLDER: one file per partition.

    Columns are key, value, partition, offset, timestamp and headers (not in CSV). Records of
    open and aborted transactions are skipped. Keys and values that are not UTF-8 need --bytes.

    \b
    ottla topic export flights flights/
    ottla topic export flights flights/ --format csv --schema 'carrier string'
    """
    by_spark = option_values["engine"] == "spark"
    (needed if by_spark else in_process).check_installed()
    if option_values["as_bytes"] and option_values["schema"]:
        raise click.UsageError("--schema reads JSON, which is text: omit --bytes or --schema")
    folder = Path(option_values["folder"])
    if folder.is_dir() and any(folder.iterdir()) and not option_values["overwrite"]:
        raise ConfigError(
            f"{folder} is not empty: choose another folder, or replace its contents with --overwrite"
        )
    starts, ends, until_ms = _range(brokers, option_values)
    facts = {"starts": starts, "ends": ends, "until_ms": until_ms}
    export = _export_with_spark if by_spark else _export_here
    count = export(brokers, option_values, facts)
    topic = option_values["topic"]
    output.done(
        f"Exported {count_text(count, 'record')} of {topic} to {option_values['folder']}.",
        topic=topic,
        folder=option_values["folder"],
        records=count,
        offsets={str(key[1]): [starts[key], ends[key]] for key in sorted(starts)},
    )


def _export_here(brokers: Brokers, options: dict[str, Any], part: dict[str, Any]) -> int:
    load_module("ottla.tools.files.sources").refuse_address(options["folder"])
    exporting = load_module("ottla.tools.files.exporting")
    job = exporting.ExportJob(
        topic=options["topic"],
        folder=Path(options["folder"]),
        format=options["file_format"],
        as_bytes=options["as_bytes"],
        schema=options["schema"],
        **part,
    )
    return int(exporting.export_topic(brokers, job))


def _export_with_spark(brokers: Brokers, options: dict[str, Any], part: dict[str, Any]) -> int:
    if options["schema"]:
        note("Values that do not fit --schema become empty columns, which Spark does not count.")
    if options["schema"] or options["file_format"] == "csv":
        note("The files have no headers. Use Parquet or JSON, without --schema, to keep them.")
    exporting = needed.module("ottla.streams.spark.pipelines.topic_files")
    settings = exporting.ExportSettings(
        topic=options["topic"],
        folder=options["folder"],
        format=options["file_format"],
        as_bytes=options["as_bytes"],
        schema=options["schema"],
        overwrite=options["overwrite"] or Path(options["folder"]).is_dir(),
        **part,
    )
    spark = needed.open_session(f"export {settings.topic}", {})
    with watched(f"Exporting {settings.topic}") as show:
        return int(exporting.export(spark, _access_of(brokers), settings, show))


def _range(
    brokers: Brokers, options: dict[str, Any]
) -> tuple[dict[Any, int], dict[Any, int], int | None]:
    """Return the first and last offsets of the selected partitions, and the end if it is a time."""
    topic = describe_topic(brokers, options["topic"])
    known = [row.partition for row in topic.partitions]
    for number in options["partitions"]:
        check_partition(topic.name, number, known)
    keys = [(topic.name, number) for number in known if number in (options["partitions"] or known)]
    now_ms = time.time_ns() // 1_000_000
    try:
        start, end = (parse_position(options[name], now_ms) for name in ("start", "end"))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if Anchor.STORED in (start.anchor, end.anchor):
        raise click.UsageError("`stored` is not supported here: use an offset or a time")
    starts = resolve(brokers, keys, start)
    ends, until_ms = resolve_end(brokers, keys, end)
    return starts, {key: max(ends[key], starts[key]) for key in keys}, until_ms
