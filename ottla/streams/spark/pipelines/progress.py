"""Checks at the start of a pipeline that each sink's checkpoint and target know the same progress.

* files: a folder belongs to one checkpoint. Spark's file sink skips every batch whose number is in
  `_spark_metadata` of the folder, whichever query wrote it. So the first start writes one id to the
  checkpoint and to the folder, and later starts compare them. A checkpoint that was moved keeps it.
* topic with mode append, mirror: the ledger of the query, in the offsets of a group.
* jdbc: the number of the batch in the table `ottla_batches`.

Not done: a folder with files that no stream wrote is not refused, although readers that know
`_spark_metadata` ignore these files; with `start: latest` a new checkpoint does not read the
records since the end of an earlier one.
"""

import json
import uuid

from pyspark.sql import SparkSession

from ottla.base.errors import ConfigError
from ottla.streams.pipelines.model import FileSink, JdbcSink, MirrorSink, Sink, TopicSink
from ottla.streams.pipelines.table_formats import TABLE_FORMATS
from ottla.streams.spark.pipelines.jdbc import JdbcTable
from ottla.streams.spark.pipelines.sinks import SinkSettings, access_of
from ottla.streams.spark.query.batches import CheckpointBatches, compare_ledger
from ottla.streams.spark.query.folders import HadoopFolder

# Spark ignores other names in a checkpoint, and files of a data folder that begin with _.
_IN_CHECKPOINT = "ottla-target.json"
_IN_FOLDER = "_ottla_checkpoint"
_LOG = "_spark_metadata"


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
            pass
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


def _claim(
    folder: HadoopFolder,
    checkpoint: HadoopFolder,
    batches: CheckpointBatches,
    settings: SinkSettings,
    subject: str,
) -> None:
    """Make a folder the target of a checkpoint; raise ConfigError if it belongs to another."""
    text = checkpoint.read(_IN_CHECKPOINT)
    own_id = uuid.uuid4().hex if text is None else str(json.loads(text)["id"])
    written = folder.last_number(_LOG)
    owner = _owner(folder)
    if owner is not None and owner["id"] != own_id:
        raise ConfigError(_other(subject, folder, f"the checkpoint {owner['checkpoint']}"))
    if owner is None and written >= 0 and batches.is_new:
        raise ConfigError(_other(subject, folder, "another checkpoint"))
    place = f"the folder {folder.location}"
    batches.compare(subject, place, written, has_all=True)
    if text is None:
        checkpoint.write(_IN_CHECKPOINT, json.dumps({"id": own_id, "folder": folder.location}))
    if owner is None:
        document = {"id": own_id, "checkpoint": settings.checkpoint}
        folder.write_new(_IN_FOLDER, json.dumps(document))
        owner = _owner(folder)
        if owner is None or owner["id"] != own_id:
            raise ConfigError(_other(subject, folder, "another checkpoint"))


def _owner(folder: HadoopFolder) -> dict[str, str] | None:
    text = folder.read(_IN_FOLDER)
    return None if text is None else dict(json.loads(text))


def _other(subject: str, folder: HadoopFolder, owner: str) -> str:
    return (
        f"{subject}: the folder {folder.location} belongs to {owner}. Spark skips every batch whose "
        "number the folder has, so another checkpoint would lose rows. Continue with that "
        "checkpoint, or write to another folder; to write all rows again, delete the folder first."
    )
