"""The options with which a pipeline reads its topics."""

import pytest

from ottla.client.config.access import ClusterAccess
from ottla.streams.pipelines import check
from ottla.streams.pipelines.model import TopicSource
from ottla.streams.spark.pipelines.frames import topic_options


@pytest.mark.parametrize(
    ("written", "option"),
    [("", None), (", fail_on_data_loss: true", None), (", fail_on_data_loss: false", "false")],
)
def test_lost_records_end_a_pipeline_unless_its_source_says_otherwise(
    written: str, option: str | None
) -> None:
    """The default is that of Spark's connector."""
    text = f"name: a\nsources: {{rows: {{topic: in{written}}}}}\nsinks: {{out: {{from: rows, topic: t}}}}\n"
    pipeline = check(text).pipeline
    assert pipeline is not None
    source = pipeline.sources["rows"]
    assert isinstance(source, TopicSource)
    assert topic_options(source, ClusterAccess("b:1"), "g").get("failOnDataLoss") == option
