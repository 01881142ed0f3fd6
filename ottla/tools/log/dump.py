"""`ottla log dump FILE…`: print the files of a log directory, Ottla's or Apache Kafka's.

Exit code 1, with a message on standard error, if a file is damaged; the readable part is printed.
"""

import os
import sys
from pathlib import Path

import click

from ottla.base.errors import OttlaError
from ottla.tools import options
from ottla.tools.log import comparison, segments, sidecars
from ottla.tools.output import Output, ProgressBar, note

_SEGMENT_SUFFIXES = (".log",)
_INDEX_SUFFIXES = (".index", ".timeindex")
_OFFSETS_TOPIC = "__consumer_offsets-"


@click.command("dump")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--records", "with_records", is_flag=True, help="Show each record of a segment.")
@options.formatted
def command(output: Output, files: tuple[str, ...], with_records: bool) -> None:
    """Print and check segments, indexes, producer snapshots and checkpoints.

    An index is compared with the segment beside it.

    \b
    ottla log dump ottla-data/orders-0/00000000000000000000.log --records
    """
    complaints = []
    for name in files:
        path = Path(name)
        if len(files) > 1 and not output.is_json:
            click.echo(f"{name}:")
        if path.suffix in _SEGMENT_SUFFIXES:
            problems = _dump_segment(output, path, with_records)
        else:
            problems = _dump_sidecar(output, path)
        complaints += [f"{name}: {complaint}" for complaint in problems]
    for complaint in complaints:
        note(complaint)
    if complaints:
        click.get_current_context().exit(1)


def _dump_segment(output: Output, path: Path, with_records: bool) -> list[str]:
    columns = segments.RECORD_COLUMNS if with_records else segments.BATCH_COLUMNS
    is_offsets_topic = path.absolute().parent.name.startswith(_OFFSETS_TOPIC)
    complaints: list[str] = []
    last_offset = sidecars.base_offset_of(path.name) - 1
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        walk = segments.SegmentWalk(lambda at, count: os.pread(descriptor, count, at), size)
        is_shown = not sys.stdout.isatty()
        with (
            ProgressBar(path.name, size, is_bytes=True, is_shown=is_shown) as progress,
            output.stream(columns) as rows,
        ):
            for batch in walk:
                complaints += _disorder(batch, last_offset)
                last_offset = max(last_offset, batch.header.last_offset)
                if with_records:
                    rows.extend(segments.record_rows(batch, is_offsets_topic=is_offsets_topic))
                else:
                    rows.append(segments.batch_row(batch))
                progress.advance(batch.header.size_bytes)
    finally:
        os.close(descriptor)
    if walk.invalid:
        noun = "batch has" if walk.invalid == 1 else "batches have"
        complaints.append(f"{walk.invalid} {noun} a wrong checksum: see the rows marked BAD")
    if walk.position < size:
        complaints.append(
            f"{size - walk.position} bytes from position {walk.position} on are not a complete batch; "
            "a broker truncates them at startup"
        )
    return complaints


def _disorder(batch: segments.FoundBatch, last_offset: int) -> list[str]:
    first = batch.header.base_offset
    if first > last_offset:
        return []
    return [
        f"the batch at position {batch.position} begins with offset {first}, although the next "
        f"one is {last_offset + 1}"
    ]


def _dump_sidecar(output: Output, path: Path) -> list[str]:
    read = sidecars.BY_SUFFIX.get(path.suffix) or sidecars.BY_NAME.get(path.name)
    if read is None:
        known = ", ".join([".log", *sidecars.BY_SUFFIX, *sidecars.BY_NAME])
        raise OttlaError(f"{path} is not a supported file of a log directory: {known}")
    data = path.read_bytes()
    try:
        content = read(data, sidecars.base_offset_of(path.name))
    except ValueError as error:
        return [f"the file is damaged: {error}"]
    empty = "" if content.complaints else f"{path.name} is empty."
    output.rows(content.rows, content.columns, empty=empty)
    if path.suffix not in _INDEX_SUFFIXES:
        return content.complaints
    try:
        return content.complaints + comparison.differences(path, content.rows)
    except FileNotFoundError:
        note(f"{path.with_suffix('.log')} is not there: the index is not compared with its segment")
        return content.complaints
