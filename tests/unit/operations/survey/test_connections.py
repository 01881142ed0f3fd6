"""Settings, the cache and the pool of a connection to a cluster."""

import pytest

from ottla.base.errors import ConfigError
from ottla.operations.survey.connections import (
    ClusterConnection,
    ClusterSettings,
    ClusterUnavailable,
)
from ottla.operations.survey.metadata import read_metadata

_NOWHERE = "127.0.0.1:1"
SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "ann",
    "sasl.password": "secret",
}


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _connection(clock: Clock | None = None) -> ClusterConnection:
    return ClusterConnection(ClusterSettings("east", _NOWHERE), clock=clock or Clock())


def test_a_cluster_is_written_as_name_and_address() -> None:
    """NAME=HOST:PORT,HOST:PORT names a cluster and its bootstrap servers."""
    settings = ClusterSettings.parse("east=a:9092,b:9093")
    assert (settings.name, settings.bootstrap) == ("east", "a:9092,b:9093")


@pytest.mark.parametrize("text", ["a:9092", "=a:9092", "x y=a:9092", "east=a:b", "../x=a:1"])
def test_malformed_clusters_are_rejected(text: str) -> None:
    """A missing name, a name that is no path segment, and a malformed port raise ConfigError."""
    with pytest.raises(ConfigError):
        ClusterSettings.parse(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"security.protocol": "TLS"}, r"'east': security\.protocol=TLS: use PLAINTEXT, SSL"),
        ({"security.protocol": "SASL_SSL"}, r"'east': sasl\.mechanism=GSSAPI is not supported"),
    ],
)
def test_a_wrong_option_of_a_client_is_rejected(options: dict[str, str], message: str) -> None:
    """The error names the cluster and the option."""
    with pytest.raises(ConfigError, match=message):
        ClusterSettings("east", _NOWHERE, options)


def test_the_text_of_settings_has_no_password() -> None:
    """Logs and traces do not show the options."""
    settings = ClusterSettings("east", _NOWHERE, SASL)
    assert settings.security_protocol == "SASL_PLAINTEXT"
    assert "secret" not in repr(settings)


def test_an_absent_cluster_is_reported_with_its_name() -> None:
    """The error names the cluster, the address and the remedy."""
    with pytest.raises(ClusterUnavailable, match=r"'east'.*127\.0\.0\.1:1.*Check"):
        read_metadata(_connection())
