"""Files of both engines of `ottla topic export` and `ottla topic load` are the same."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.client.config.access import ClusterAccess
from ottla.client.raw.producer import RecordProducer
from ottla.streams.spark.pipelines.topic_files import ExportSettings, LoadSettings, export, load
from ottla.streams.spark.query.failures import QueryError
from ottla.testing.cluster import Cluster
from ottla.tools.files.exporting import ExportJob, export_topic
from ottla.tools.files.loading import LoadJob, load_files
from ottla.tools.files.mapping import LoadMapping
from tests.corpus.judges import read_with_librdkafka

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.alone]

_TEXTS = [b"a\nb", b'q"u"o', b"  blanks  ", b"", None, b"\r\n", b"a,b", b"\\", b"{}", b"NULL", b"7"]


def test_files_of_one_engine_are_loaded_by_the_other(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """CSV, JSON lines and Parquet, as text and as bytes, restore each record in both directions."""
    broker.create_topic("both")
    with RecordProducer(broker.bootstrap) as producer:
        for number, text in enumerate(_TEXTS):
            headers = [("h", b"\xff"), ("n", None)] if number == 1 else []
            producer.send("both", text, key=_TEXTS[-number], partition=0, headers=headers)
    rows = read_with_librdkafka(broker.bootstrap, "both")
    access = ClusterAccess(broker.bootstrap)
    part: dict[str, Any] = {"starts": {("both", 0): 0}, "ends": {("both", 0): len(rows)}}
    forms = itertools.product(("csv", "json", "parquet"), (False, True))
    with broker.admin() as brokers:
        for number, (name, as_bytes) in enumerate(forms):
            here, by_spark = f"here-{number}", f"spark-{number}"
            broker.create_topic(here)
            broker.create_topic(by_spark)
            form = {"topic": "both", "format": name, "as_bytes": as_bytes}
            job = ExportJob(folder=tmp_path / here, **form, **part)
            assert export_topic(brokers, job) == len(rows)
            reading = LoadSettings(topic=by_spark, format=name, is_records=True)
            assert load(spark, access, [str(tmp_path / here)], reading, _ignore) == len(rows)
            folder = str(tmp_path / by_spark)
            exporting = ExportSettings(folder=folder, **form, **part)
            assert export(spark, access, exporting, _ignore) == len(rows)
            mapping = LoadMapping(is_records=True)
            loading = LoadJob(
                topic=here, partitions=1, files=(folder,), format=name, mapping=mapping
            )
            assert load_files(brokers, loading).records == len(rows)
            for topic in (here, by_spark):
                back = read_with_librdkafka(broker.bootstrap, topic)
                assert _parts(back, name) == _parts(rows, name), (topic, name, as_bytes)
    broker.create_topic("misfit")
    with RecordProducer(broker.bootstrap) as producer:
        producer.send("both", b"\xff", partition=0)
    whole: dict[str, Any] = {"starts": {("both", 0): 0}, "ends": {("both", 0): len(rows) + 1}}
    text = ExportSettings(topic="both", format="csv", folder=str(tmp_path / "text"), **whole)
    with pytest.raises(QueryError, match=r"is not UTF-8, so that .*: add --bytes"):
        export(spark, access, text, _ignore)
    (tmp_path / "misfit.csv").write_text("a,b\n1,x\n")
    wrong = LoadSettings(topic="misfit", format="csv", schema="a int, b int")
    with pytest.raises(
        QueryError, match=r"does not fit the columns: \[1,null\]\. --engine process"
    ):
        load(spark, access, [str(tmp_path / "misfit.csv")], wrong, _ignore)
    assert read_with_librdkafka(broker.bootstrap, "misfit") == []


def _parts(rows: list[Any], file_format: str) -> list[Any]:
    return [
        (row.timestamp, row.key, row.value, () if file_format == "csv" else row.headers)
        for row in rows
    ]


def _ignore(done: int, total: int) -> None:
    """Show no progress."""
