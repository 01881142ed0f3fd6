"""Every reader and writer on Spark keeps what the log holds: each cell of the matrix."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ottla.testing import Cluster
from tests.corpus.judges import Reading
from tests.corpus.serde_cells import serdes
from tests.corpus.spark_cells import READS, Cells, PipelineSinks, spark_sink
from tests.corpus.table import SPARK_READERS, SPARK_WRITERS, cells
from tests.spark.sessions import shared_session, shorten_starts

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

Oracle = dict[str, list[Reading]]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """The session of the tests of Spark, which run in the same process."""
    with pytest.MonkeyPatch.context() as patch:
        shorten_starts(patch)
        yield shared_session()


@pytest.fixture(scope="module")
def sinks(
    spark: SparkSession, corpus: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> PipelineSinks:
    """The targets of a pipeline that has read the corpus."""
    return PipelineSinks(spark, corpus, tmp_path_factory.mktemp("sinks"))


@pytest.fixture(scope="module")
def known() -> dict[str, Cells]:
    """The results of all topics of a reader or writer, which are computed once."""
    return {}


@pytest.mark.parametrize(("reader", "topic"), cells(SPARK_READERS))
def test_readers_on_spark_show_what_a_plain_consumer_reads(
    spark: SparkSession,
    corpus: Cluster,
    oracle: Oracle,
    known: dict[str, Cells],
    reader: str,
    topic: str,
) -> None:
    """The records of the topic, byte for byte, in the form of the reader."""
    if reader not in known:
        known[reader] = READS[reader](spark, corpus, oracle)
    found, expected = known[reader][topic]
    assert found == expected


@pytest.mark.parametrize(("writer", "topic"), cells(SPARK_WRITERS))
def test_writers_on_spark_keep_what_they_are_given(
    spark: SparkSession,
    corpus: Cluster,
    oracle: Oracle,
    known: dict[str, Cells],
    sinks: PipelineSinks,
    writer: str,
    topic: str,
) -> None:
    """A plain reader of the target finds the same records, byte for byte."""
    if writer not in known:
        writes = {
            "Spark sink": lambda: spark_sink(spark, corpus, oracle),
            "pipeline sink, topic": lambda: sinks.topic(oracle),
            "pipeline sink, files": lambda: sinks.files(oracle),
            "pipeline sink, jdbc": lambda: sinks.jdbc(oracle),
            "pipeline sink, mirror": lambda: sinks.mirror(oracle),
            "serdes": lambda: serdes(oracle),
        }
        known[writer] = writes[writer]()
    found, expected = known[writer][topic]
    assert found == expected
