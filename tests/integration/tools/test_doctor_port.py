"""Doctor: a broker that listens on an address is recognised."""

import pytest

from ottla.client.bootstrap import Address
from ottla.client.security.options import security_of
from ottla.testing import Cluster
from ottla.tools.doctor import port
from ottla.tools.doctor.findings import State


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the timeouts."""
    monkeypatch.setattr(port, "PATIENCE_S", 0.3)


def test_a_broker_is_recognised() -> None:
    """The check succeeds on the response to ApiVersions."""
    with Cluster() as cluster:
        finding = port.examine(Address(cluster.host, cluster.port))
    assert (finding.state, finding.remedy) == (State.OK, "")
    assert "speaks Kafka's protocol" in finding.found


def test_a_listener_in_plain_text_is_recognised_with_tls() -> None:
    """The remedy names the options that may be wrong."""
    security = security_of({"security.protocol": "SSL"})
    with Cluster() as cluster:
        finding = port.examine(Address(cluster.host, cluster.port), security=security)
    assert finding.state is State.FAIL
    assert "cannot be reached with TLS" in finding.found
    assert "security.protocol" in finding.remedy
