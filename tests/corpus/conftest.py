"""One cluster with the corpus for all tests of this folder, and what plain consumers read of it."""

from collections.abc import Iterator

import pytest

from ottla.testing import Cluster
from ottla.testing.corpus import CLUSTER_OPTIONS, corpus_topics, write_corpus
from tests.corpus.judges import Reading, read_with_librdkafka


@pytest.fixture(scope="session")
def corpus() -> Iterator[Cluster]:
    """A broker with all topics, groups and transactions of the corpus."""
    with Cluster(options=CLUSTER_OPTIONS) as cluster, cluster.admin() as brokers:
        write_corpus(brokers)
        yield cluster


@pytest.fixture(scope="session")
def oracle(corpus: Cluster) -> dict[str, list[Reading]]:
    """The committed records of each topic, as librdkafka reads them."""
    return {
        topic.name: read_with_librdkafka(corpus.bootstrap, topic.name, range(topic.partitions))
        for topic in corpus_topics()
    }
