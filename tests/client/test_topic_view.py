"""A topic as a table for pandas, polars, DuckDB and notebooks."""

import subprocess
import sys

import pytest

from ottla.base.errors import ApiError
from ottla.client import AdminClient, Producer, TopicView
from ottla.client.doors import open_door
from ottla.testing import Cluster
from tests.client.test_consumer import fill

_DUCKDB = """
import duckdb
from ottla.client import TopicView
connection = TopicView("{topic}", "{bootstrap}").register(duckdb.connect(), "orders")
query = "SELECT count(*), max(\\"offset\\") FROM orders WHERE value < '5'"
print(connection.execute(query).fetchone())
"""


def test_topic_is_a_table_in_every_library(cluster: Cluster, topic: str) -> None:
    """Arrow, pandas, polars and DuckDB see the same records."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    view = TopicView(topic, cluster.bootstrap)
    values = sorted(view.to_arrow(columns=["value"])["value"].to_pylist())
    assert values == [b"%d" % number for number in range(9)]
    assert sorted(view.to_pandas()["value"]) == values
    assert sorted(view.to_polars(start=1)["offset"].to_list()) == [1, 1, 1, 2, 2, 2]
    # In a process of its own: when a test run ends, DuckDB reports every object that is still
    # alive.
    script = _DUCKDB.format(topic=topic, bootstrap=cluster.bootstrap)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "(5, 1)", done.stderr


def test_notebook_shows_the_last_records(cluster: Cluster, topic: str) -> None:
    """Values are shown as text, and escaped."""
    fill(cluster, topic, [b"<b>", b"two"])
    html = TopicView(topic, cluster.bootstrap)._repr_html_()
    assert html.startswith("<table><thead><tr><th>key</th><th>value</th>")
    assert "<td>&lt;b&gt;</td>" in html


def test_notebook_shows_the_newest_records_of_all_partitions(cluster: Cluster, topic: str) -> None:
    """A partition with many records does not hide the others."""
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(40):
            producer.send(topic, b"old", partition=0, timestamp=1000 + number)
        producer.send(topic, b"newest", partition=2, timestamp=2000)
    html = TopicView(topic, cluster.bootstrap)._repr_html_()
    assert html.count("<td>old</td>") == 19
    assert html.count("<td>newest</td>") == 1


def test_table_of_a_secured_cluster() -> None:
    """The options are the same as for the other clients, and may have the addresses."""
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    options = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0, inner://127.0.0.1:0",
        "listener.security.protocol.map": "INNER:PLAINTEXT",
        "inter.broker.listener.name": "INNER",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{login} user_ann="secret";',
    }
    config = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{login} username="ann" password="secret";',
    }
    with Cluster(options=options) as cluster:
        config["bootstrap.servers"] = cluster.bootstrap_of("SASL_PLAINTEXT")
        with AdminClient(config) as admin, Producer(config) as producer:
            admin.create_topic("t")
            producer.send("t", b"value")
        view = TopicView("t", config=config)
        assert view.to_arrow()["value"].to_pylist() == [b"value"]
        assert "secret" not in repr(view)
        wrong = config | {"sasl.jaas.config": f'{login} username="ann" password="no";'}
        with pytest.raises(ApiError, match="Authentication failed"):
            TopicView("t", config=wrong).to_arrow()


def test_missing_library_is_named() -> None:
    """The error has the command that installs it."""
    with pytest.raises(ImportError, match="pip install 'no-such-library'"):
        open_door("no_such_library", "no-such-library", "no-such-library")
