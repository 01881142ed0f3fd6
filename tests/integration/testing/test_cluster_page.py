"""The examples of docs/cluster.md run as shown."""

import ast
import re
from typing import Any

import confluent_kafka
import kafka
import pytest

from ottla.client import AdminClient
from ottla.testing import Cluster
from tests.law import source

PAGE = "docs/cluster.md"


def _examples() -> list[str]:
    page = (source.ROOT / PAGE).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_a_cluster_of_the_page_survives_the_death_of_a_leader() -> None:
    """Its lines kill the leader of a topic, find another one, and wait for the former one."""
    names: dict[str, Any] = {}
    lines = _examples()[0].replace(
        'cluster.leader("orders")  #', 'successor = cluster.leader("orders")  #'
    )
    exec(compile(lines, PAGE, "exec"), names)
    assert names["successor"] != names["leader"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_clients_of_the_page_connect_to_a_secured_cluster() -> None:
    """Each gets the settings of a user in the words of its library."""
    clients: dict[str, Any] = {"confluent_kafka": confluent_kafka, "kafka": kafka}
    names = {**clients, "Cluster": Cluster, "AdminClient": AdminClient}
    for example in _examples()[1:3]:
        # While the brokers run: a socket of kafka-python that reconnects stays open.
        lines = example.replace("    with Admin", "    consumer.close()\n    with Admin")
        exec(compile(lines, PAGE, "exec"), names)
    assert names["anna"].protocol == "SASL_SSL"


def test_fixture_of_the_page_is_a_function() -> None:
    """The other example replaces a fixture by one of the same name."""
    functions = [node for node in ast.parse(_examples()[3]).body if hasattr(node, "name")]
    assert [function.name for function in functions] == [
        "ottla_security",
        "test_orders_are_published",
    ]
