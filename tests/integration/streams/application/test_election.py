"""The election of the active instance, by the group on a broker."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from ottla.client.admin.groups import describe_group
from ottla.streams.application.election import (
    PROTOCOL_TYPE,
    Candidate,
    Election,
    ElectionSettings,
    group_of,
)
from ottla.testing.cluster import Cluster

_PATIENCE_S = 30.0
_OPTIONS = {"group.min.session.timeout.ms": "2000"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Cluster]:
    """A broker that allows short sessions."""
    with Cluster(options=_OPTIONS) as cluster:
        yield cluster


class _Instance:
    """An instance that records the changes of its election."""

    def __init__(self, broker: Cluster, application_id: str, name: str, since_ms: int) -> None:
        self.changed = threading.Condition()
        settings = ElectionSettings(broker.bootstrap, application_id, 3000, 50)
        self.election = Election(settings, Candidate(name, since_ms, f"{name}:1"), self._heard)
        self.election.start()

    def _heard(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def wait(self, is_so: Callable[[Election], bool]) -> None:
        """Wait until the condition is true of the election."""
        deadline = time.monotonic() + _PATIENCE_S
        with self.changed:
            while not is_so(self.election):
                assert self.changed.wait(deadline - time.monotonic()), self.election.result


def test_a_session_timeout_that_the_broker_rejects_is_an_error(broker: Cluster) -> None:
    """A session timeout below the broker's minimum is reported."""
    heard = threading.Event()
    settings = ElectionSettings(broker.bootstrap, "short", 100, 50)
    election = Election(settings, Candidate("only", 1), heard.set)
    election.start()
    assert heard.wait(_PATIENCE_S)
    assert "INVALID_SESSION_TIMEOUT" in repr(election.error) or "session" in str(election.error)
    election.stop()


def _size(count: int) -> Callable[[Election], bool]:
    def is_so(election: Election) -> bool:
        return election.result is not None and len(election.result.instances) == count

    return is_so


def test_the_next_instance_takes_over(broker: Cluster) -> None:
    """An older second instance is on standby; it becomes active as soon as the first leaves."""
    first = _Instance(broker, "takeover", "first", 5)
    first.wait(lambda election: election.is_active)
    second = _Instance(broker, "takeover", "second", 1)
    second.wait(_size(2))
    first.wait(_size(2))
    assert first.election.is_active
    assert not second.election.is_active
    with broker.admin() as brokers:
        group = describe_group(brokers, group_of("takeover"))
    assert group.protocol_type == PROTOCOL_TYPE
    assert len(group.members) == 2
    first.election.stop()
    assert not first.election.is_active
    with broker.admin() as brokers:
        assert len(describe_group(brokers, group_of("takeover")).members) == 1
    second.wait(lambda election: election.is_active)
    second.election.stop()


def test_all_instances_learn_of_a_shutdown_of_the_application(broker: Cluster) -> None:
    """One instance requests the shutdown, and both learn of it."""
    first, second = (_Instance(broker, "ending", name, 1) for name in ("first", "second"))
    second.wait(_size(2))
    first.wait(_size(2))
    first.election.ask_shutdown()
    for member in (first, second):
        member.wait(lambda election: election.result is not None and election.result.is_shutdown)
        member.election.stop()
        assert member.election.error is None


def test_an_instance_without_connection_is_deposed() -> None:
    """After the end of its session another instance may be active."""
    with Cluster(options=_OPTIONS) as cluster:
        only = _Instance(cluster, "lonely", "only", 1)
        only.wait(lambda election: election.is_active)
        cluster.stop()
        only.wait(lambda election: not election.is_active)
        stopping = threading.Thread(target=only.election.stop)
        stopping.start()
        stopping.join(_PATIENCE_S)
        assert not stopping.is_alive()
