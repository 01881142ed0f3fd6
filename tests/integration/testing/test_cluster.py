"""The cluster in a test's process: fast, isolated, and easy to stop."""

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError, OttlaError
from ottla.client import AdminClient
from ottla.client.admin import configs
from ottla.testing import Cluster


def test_a_cluster_is_ready_when_the_block_begins() -> None:
    """The first request succeeds without a wait or a retry."""
    with Cluster() as cluster:
        cluster.create_topic("orders", partitions=3)
        assert cluster.topics() == ["orders"]


def test_a_cluster_starts_within_a_moment() -> None:
    """The limit is 0.3 s; the best of three starts excludes the load of the machine."""
    with Cluster():
        pass
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        with Cluster():
            seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.3


def test_two_clusters_share_nothing() -> None:
    """Concurrent tests do not see each other's topics."""
    with Cluster() as one, Cluster() as other:
        one.create_topic("mine")
        assert other.topics() == []
        assert one.bootstrap != other.bootstrap
        assert one.cluster_id != other.cluster_id


def test_a_restart_keeps_data_and_address() -> None:
    """Connected clients reconnect."""
    with Cluster() as cluster:
        cluster.create_topic("kept")
        before = (cluster.bootstrap, cluster.cluster_id)
        cluster.restart()
        assert cluster.topics() == ["kept"]
        assert (cluster.bootstrap, cluster.cluster_id) == before


_LISTENERS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0, inner://127.0.0.1:0",
    "listener.security.protocol.map": "INNER:PLAINTEXT",
    "inter.broker.listener.name": "INNER",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_ann="secret";'
    ),
}


def test_each_listener_has_an_address_that_outlasts_a_restart() -> None:
    """A client finds a listener by its name in `listeners`, in capital or small letters."""
    with Cluster(brokers=2, options=_LISTENERS) as cluster:
        secured, inner = cluster.bootstrap_of("SASL_PLAINTEXT"), cluster.bootstrap_of("inner")
        assert cluster.bootstrap == secured
        assert len({*secured.split(","), *inner.split(",")}) == 4
        cluster.create_topic("orders", replication_factor=2)
        with AdminClient(
            bootstrap_servers=secured,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username="ann",
            sasl_password="secret",
        ) as admin:
            assert [topic.name for topic in admin.list_topics()] == ["orders"]
        cluster.restart(2)
        assert cluster.bootstrap_of("SASL_PLAINTEXT") == secured
        assert cluster.bootstrap_of("INNER") == inner


def test_unknown_listener_is_an_error() -> None:
    """It names the listeners that there are."""
    with Cluster() as cluster, pytest.raises(OttlaError, match=r"no listener SSL: .* PLAINTEXT"):
        cluster.bootstrap_of("SSL")


def test_stopping_twice_is_stopping_once() -> None:
    """Both a fixture and a test may stop the cluster."""
    cluster = Cluster().start()
    address = (cluster.bootstrap.partition(":")[0], int(cluster.bootstrap.rpartition(":")[2]))
    cluster.stop()
    cluster.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


def test_stopped_cluster_leaves_no_files_or_threads() -> None:
    """No directory and no thread remain."""
    threads = threading.active_count()
    with Cluster() as cluster:
        folder = cluster.data
        assert folder.is_dir()
    assert not folder.exists()
    assert threading.active_count() == threads


def test_stopped_cluster_raises_an_error() -> None:
    """Its address raises an error."""
    with pytest.raises(OttlaError, match="not running: use `with Cluster"):
        _ = Cluster().bootstrap


def test_given_data_directory_is_kept(tmp_path: Path) -> None:
    """A directory of the caller is not removed."""
    with Cluster(data=tmp_path / "data") as cluster:
        cluster.create_topic("kept")
    with Cluster(data=tmp_path / "data") as cluster:
        assert cluster.topics() == ["kept"]


def test_options_are_passed_to_the_broker() -> None:
    """Every broker option can be set by its Kafka name."""
    with Cluster(options={"num.partitions": "7"}) as cluster, cluster.admin() as brokers:
        node = configs.Resource(configs.ResourceType.BROKER, "1")
        (entry,) = configs.describe_config(brokers, node, names=["num.partitions"])
        assert entry.value == "7"


def test_mistyped_option_is_rejected() -> None:
    """Otherwise a test could pass because of the default."""
    cluster = Cluster(options={"num.partition": "7"})
    with pytest.raises(ConfigError, match=r"no broker option num\.partition: did you mean num\.p"):
        cluster.start()


def test_invalid_option_raises_in_the_caller() -> None:
    """The thread's error is raised in the caller, and nothing keeps running."""
    threads = threading.active_count()
    cluster = Cluster(options={"num.partitions": "many"})
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        cluster.start()
    assert threading.active_count() == threads


async def test_an_async_test_can_wait_for_a_cluster() -> None:
    """The caller's loop keeps running while the broker starts and stops."""
    async with Cluster() as cluster:
        assert cluster.topics() == []


def test_the_fixture_is_a_running_cluster(ottla_cluster: Cluster) -> None:
    """The fixture `ottla_cluster` comes with the installation, without an import."""
    assert ottla_cluster.topics() == []
    ottla_cluster.create_topic("seen-by-this-test-only")


def test_the_fixture_is_new_in_every_test(ottla_cluster: Cluster) -> None:
    """Topics of the previous test do not exist."""
    assert ottla_cluster.topics() == []


class TestOptions:
    """A class, a module or a conftest can define options for its tests' clusters."""

    @pytest.fixture
    def ottla_options(self) -> dict[str, str]:
        """Return an option for three partitions per topic."""
        return {"num.partitions": "3"}

    def test_the_fixtures_options_can_be_overridden(self, ottla_cluster: Cluster) -> None:
        """The fixture `ottla_options` is overridden like every pytest fixture."""
        assert ottla_cluster.options["num.partitions"] == "3"


def test_unused_plugin_imports_nothing() -> None:
    """Pytest loads the plugin in every project of an environment with Ottla."""
    code = (
        "import sys, pytest; before = set(sys.modules); import ottla.testing.fixture;"
        "print(sorted(m for m in set(sys.modules) - before if m.startswith('ottla')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # `ottla.base.loading` defers imports, and imports the standard library only.
    loading = "'ottla.base', 'ottla.base.loading'"
    expected = f"['ottla', {loading}, 'ottla.testing', 'ottla.testing.fixture']"
    assert done.stdout.strip() == expected
