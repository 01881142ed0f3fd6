"""The names in the Host header that a port for metrics accepts."""

import pytest

from ottla.metrics.host_names import HostNames


@pytest.mark.parametrize(
    "header",
    [
        *("127.0.0.1", "127.0.0.1:9308", "10.0.0.7", "[::1]:9308", "[2001:db8::1]", "0.0.0.0:1"),
        *("localhost", "LOCALHOST:9308", "ottla.localhost", "broker", "broker:9308"),
        *("host.docker.internal:9308", "ottla.monitoring.svc:9308"),
        *("ottla-0.ottla.default.svc.cluster.local", "kafka.example.org", "kafka.example.org.:9"),
    ],
)
def test_names_that_no_stranger_can_register_are_accepted(header: str) -> None:
    """Prometheus reaches brokers by address, in containers by name, and by the broker's own name."""
    assert HostNames(["Kafka.example.org"], []).have(header)


@pytest.mark.parametrize(
    "header",
    [
        *("evil.example", "evil.example:9308", "localhost.evil.example", "127.0.0.1.evil.example"),
        *(
            "",
            ":9308",
            ".",
            "evil.svc.example",
            "xlocalhost.example",
            "kafka.example.org.evil.example",
        ),
        *("[evil.example]:1", "a.b:c", "127.0.0.1.nip.io"),
    ],
)
def test_name_of_a_web_page_is_refused(header: str) -> None:
    """Its owner can let it point to the port."""
    assert not HostNames(["kafka.example.org"], []).have(header)


def test_operator_allows_names_and_domains() -> None:
    """A domain is not allowed by its own name, and a star alone allows all."""
    names = HostNames([], ["metrics.example.org", "*.corp.example"])
    assert names.have("Metrics.example.org:80")
    assert names.have("a.corp.example")
    assert not names.have("corp.example")
    assert not names.have("evilcorp.example")
    assert not names.have("other.example.org")
    assert HostNames([], ["*"]).have("evil.example")
