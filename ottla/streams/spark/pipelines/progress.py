"""Checks at the start of a pipeline that each sink's checkpoint and target know the same progress.

* files: a folder belongs to one checkpoint. Spark's file sink skips every batch whose number is in
  `_spark_metadata` of the folder, whichever query wrote it. So the first start writes one id to the
  checkpoint and to the folder, and later starts compare them. A checkpoint that was moved keeps it.
* Delta and Iceberg tables in a folder: they belong to one checkpoint in the same way. Their log has
  the batches of each query, so that another checkpoint would write all rows again.
* topic with mode append, mirror: the ledger of the query, in the offsets of a group.
* jdbc: the number of the batch in the table `ottla_batches`.

Not done: an Iceberg table that a catalog names, without a path, belongs to no checkpoint; a folder
with files that no stream wrote is not refused, although readers that know `_spark_metadata` ignore
these files; with `start: latest` a new checkpoint does not read the
records since the end of an earlier one.
"""

import json
import uuid

from pyspark.sql import SparkSession

from ottla.base.errors import ConfigError
from ottla.streams.pipelines.model import (
    TABLE_FORMATS,
    FileSink,
    JdbcSink,
    MirrorSink,
    Sink,
    TopicSink,
)
from ottla.streams.spark.connector.ranges import Offsets, from_json
from ottla.streams.spark.pipelines.jdbc import JdbcTable
from ottla.streams.spark.pipelines.sinks import SinkSettings, access_of
from ottla.streams.spark.query.batches import CheckpointBatches, compare_ledger
from ottla.streams.spark.query.folders import HadoopFolder

# Spark ignores other names in a checkpoint, and files of a data folder that begin with _.
_IN_CHECKPOINT = "ottla-target.json"
_IN_FOLDER = "_ottla_checkpoint"
_LOG = "_spark_metadata"
_FOLDER = (
    "Spark skips every batch whose number the folder has, so another checkpoint would lose rows"
)
_TABLE = "Another checkpoint would write all rows again"
_SHOWN = 3


def check_progress(spark: SparkSession, sink: Sink, settings: SinkSettings) -> CheckpointBatches:
    """Return the batches in a sink's checkpoint.

    Raises ConfigError if its target belongs to another checkpoint or has other batches.
    """
    checkpoint = HadoopFolder(spark, f"{settings.checkpoint}/{sink.name}")
    batches = CheckpointBatches.read(checkpoint)
    subject = f"Sink {sink.name}"
    match sink:
        case FileSink(format=kind) if kind in TABLE_FORMATS:
            # The table's own log has the query and its batches.
            if kind == "delta" or "/" in sink.path.text:
                folder = HadoopFolder(spark, sink.path.text)
                _own(folder, checkpoint, settings.checkpoint, (subject, _TABLE))
        case FileSink():
            _claim(HadoopFolder(spark, sink.path.text), checkpoint, batches, settings, subject)
        case JdbcSink() if batches.query_id:
            written = JdbcTable(sink).last_batch(spark, batches.query_id)
            place = f"the database of table {sink.table.text}"
            batches.compare(subject, place, written, has_all=True)
        case TopicSink(mode="append") | MirrorSink():
            with access_of(sink, settings.access).brokers() as brokers:
                compare_ledger(brokers, batches, subject)
    return batches


def batch_in_progress(folder: HadoopFolder) -> str:
    """Return a sentence with the records of the batch that a checkpoint has planned but not
    written; empty if no such batch reads topics.

    An expression, and most sinks, do not say which record they reject.
    """
    batches = CheckpointBatches.read(folder)
    if batches.planned <= batches.committed:
        return ""
    starts, ends = _offsets(folder, batches.planned - 1), _offsets(folder, batches.planned)
    changed = {key: end for key, end in sorted(ends.items()) if starts.get(key) != end}
    if not changed:
        return ""
    parts = [
        f"{topic}-{partition} "
        + (
            f"from offset {starts[key]} to {end - 1}"
            if key in starts
            else f"up to offset {end - 1}"
        )
        for key, end in changed.items()
        for topic, partition in (key,)
    ]
    more = f" and of {len(parts) - _SHOWN} more partitions" if len(parts) > _SHOWN else ""
    return f"The batch has the records of {', '.join(parts[:_SHOWN])}{more}."


def _offsets(folder: HadoopFolder, batch: int) -> Offsets:
    """Return the end offsets of a batch; sources that are no topics are left out."""
    # The version, the settings of the query, and a line for each source.
    lines = (folder.read(f"offsets/{batch}") or "").splitlines()[2:]
    results: Offsets = {}
    for line in lines:
        document = json.loads(line) if line.startswith("{") else {}
        if all(isinstance(offsets, dict) for offsets in document.values()):
            results |= from_json(document)
    return results


def _claim(
    folder: HadoopFolder,
    checkpoint: HadoopFolder,
    batches: CheckpointBatches,
    settings: SinkSettings,
    subject: str,
) -> None:
    """Make a folder with Spark's log the target of a checkpoint; raise ConfigError if it belongs to
    another, or has other batches.
    """
    written, owner = folder.last_number(_LOG), _owner(folder)
    if owner is None and written >= 0 and batches.is_new:
        raise ConfigError(_other(subject, folder, "another checkpoint", _FOLDER))
    if owner is None or owner["id"] == _id_in(checkpoint):
        place = f"the folder {folder.location}"
        batches.compare(subject, place, written, has_all=True)
    _own(folder, checkpoint, settings.checkpoint, (subject, _FOLDER))


def _own(
    folder: HadoopFolder, checkpoint: HadoopFolder, location: str, said: tuple[str, str]
) -> None:
    """Make a folder the target of a checkpoint; raise ConfigError if it belongs to another.

    `said` has the subject of the error, and the reason.
    """
    subject, reason = said
    stored, owner = _id_in(checkpoint), _owner(folder)
    own_id = stored or uuid.uuid4().hex
    if owner is not None and owner["id"] != own_id:
        where = f"the checkpoint {owner['checkpoint']}"
        raise ConfigError(_other(subject, folder, where, reason))
    if not stored:
        checkpoint.write(_IN_CHECKPOINT, json.dumps({"id": own_id, "folder": folder.location}))
    if owner is None:
        document = {"id": own_id, "checkpoint": location}
        folder.write_new(_IN_FOLDER, json.dumps(document))
        owner = _owner(folder)
        if owner is None or owner["id"] != own_id:
            raise ConfigError(_other(subject, folder, "another checkpoint", reason))


def _id_in(checkpoint: HadoopFolder) -> str:
    text = checkpoint.read(_IN_CHECKPOINT)
    return "" if text is None else str(json.loads(text)["id"])


def _owner(folder: HadoopFolder) -> dict[str, str] | None:
    text = folder.read(_IN_FOLDER)
    return None if text is None else dict(json.loads(text))


def _other(subject: str, folder: HadoopFolder, owner: str, reason: str) -> str:
    return (
        f"{subject}: the folder {folder.location} belongs to {owner}. {reason}. Continue with that "
        "checkpoint, or write to another folder; to write all rows again, delete the folder first."
    )
