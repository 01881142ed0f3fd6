"""`ottla cluster rotate-secret`."""

import time
from typing import Any

import pytest

from ottla.testing import Cluster

_OPTIONS = {"inter.broker.secret.overlap.ms": "60000"}


def keys(cluster: Cluster, broker_id: int) -> dict[int, bytes]:
    """Return the keys that a broker accepts, by their generations."""
    secret: Any = cluster.node(broker_id).broker.secret
    return dict(secret.valid_keys())


def test_brokers_have_another_secret_and_accept_the_former_one(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output has the generation, and how long the former secret is valid."""
    with Cluster(brokers=2, options=_OPTIONS) as cluster:
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        (former,) = keys(cluster, 1).values()
        done = run("cluster", "rotate-secret")
        assert done.code == 0
        assert done.out == (
            b"The brokers have a new secret (generation 2), and accept the former one for 60 s.\n"
        )
        deadline = time.monotonic() + 10
        while any(2 not in keys(cluster, number) for number in (1, 2)):
            assert time.monotonic() < deadline
        assert keys(cluster, 1) == keys(cluster, 2)
        assert keys(cluster, 1)[1] == former
        cluster.create_topic("t", replication_factor=2)
        again = run("cluster", "rotate-secret", "--output", "json")
        assert again.json == {"generation": 3, "overlap_seconds": 60.0}


def test_cluster_without_a_secret_is_a_sentence(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would be replaced."""
    with Cluster(options={"inter.broker.authentication": "none"}) as cluster:
        monkeypatch.setenv("OTTLA_BOOTSTRAP", cluster.bootstrap)
        done = run("cluster", "rotate-secret")
    assert (done.code, done.out) == (1, b"")
    assert (
        "inter.broker.authentication=none: the brokers prove nothing to each other" in done.errors
    )
