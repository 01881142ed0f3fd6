"""One cluster with the corpus for all tests of this folder, and what plain consumers read of it."""

from collections.abc import Iterator

import pytest

from ottla.console.accounts import passwords
from ottla.console.server import ConsoleServer
from ottla.console.state import ConsoleSettings
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings
from ottla.testing import Cluster
from ottla.testing.corpus import CLUSTER_OPTIONS, corpus_topics, write_corpus
from tests.console.session import PASSWORD, ConsoleSession
from tests.corpus.judges import Reading, read_with_librdkafka
from tests.corpus.setting import Setting
from tests.integration.tools.conftest import Run
from tests.integration.tools.conftest import run_alone as run_alone


@pytest.fixture(scope="session")
def corpus() -> Iterator[Cluster]:
    """A broker with all topics, groups and transactions of the corpus."""
    serving = {
        "metrics.listener": "127.0.0.1:0",
        "metrics.dialects": "jmx-exporter,kafka-exporter",
        "search.enable": "true",
    }
    options = {**CLUSTER_OPTIONS, **serving}
    with Cluster(options=options) as cluster, cluster.admin() as brokers:
        write_corpus(brokers)
        yield cluster


@pytest.fixture(scope="session")
def oracle(corpus: Cluster) -> dict[str, list[Reading]]:
    """The committed records of each topic, as librdkafka reads them."""
    return {
        topic.name: read_with_librdkafka(corpus.bootstrap, topic.name, range(topic.partitions))
        for topic in corpus_topics()
    }


@pytest.fixture(scope="session")
def console(corpus: Cluster) -> Iterator[ConsoleServer]:
    """A console of the cluster."""
    former = passwords.COST, passwords.PARALLEL
    passwords.COST, passwords.PARALLEL = 16, 1
    clusters = (ClusterSettings("local", corpus.bootstrap),)
    settings = ConsoleSettings(
        clusters, ":memory:", port=0, first_password=PASSWORD, sample_s=3600.0
    )
    server = ConsoleServer(settings)
    server.start()
    yield server
    server.stop()
    passwords.COST, passwords.PARALLEL = former


@pytest.fixture(scope="session")
def session(console: ConsoleServer) -> ConsoleSession:
    """A session of the admin."""
    opened = ConsoleSession(console.url)
    opened.login("admin", PASSWORD)
    return opened


@pytest.fixture(scope="session")
def connection(corpus: Cluster) -> Iterator[ClusterConnection]:
    """A connection of the console's model."""
    opened = ClusterConnection(ClusterSettings("local", corpus.bootstrap))
    yield opened
    opened.close()


@pytest.fixture
def setting(
    corpus: Cluster,
    connection: ClusterConnection,
    console: ConsoleServer,
    session: ConsoleSession,
    run_alone: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> Setting:
    """Everything that reads the corpus."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", corpus.bootstrap)
    return Setting(corpus, connection, console, session, run_alone)
