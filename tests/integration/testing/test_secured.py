"""The security of a test cluster: wrong arguments, and files that only the owner can read."""

import stat

import pytest

from ottla.testing import Cluster
from ottla.testing.secured import ClusterSecurity


def test_unknown_security_is_refused() -> None:
    """The error names the known ones."""
    with pytest.raises(ValueError, match="use one of ssl, sasl_plaintext, sasl_ssl"):
        Cluster(security="tls")


def test_listeners_are_set_by_the_security() -> None:
    """Two values for one option would contradict each other."""
    with pytest.raises(ValueError, match="security='ssl' sets listeners, too"):
        Cluster(security="ssl", options={"listeners": "PLAINTEXT://127.0.0.1:0"})


def test_cluster_without_security_has_settings_of_its_address() -> None:
    """A test can be written once for clusters with and without security."""
    with Cluster() as cluster:
        settings = cluster.client_settings()
        assert settings.librdkafka == {
            "bootstrap.servers": cluster.bootstrap,
            "security.protocol": "PLAINTEXT",
        }
        assert settings.kafka_python["security_protocol"] == "PLAINTEXT"


def test_keys_are_readable_by_their_owner_only_and_removed() -> None:
    """They are in a folder of their own, which is removed with the cluster."""
    security = ClusterSecurity("SSL", {})
    options = security.options()
    settings = security.settings("anna", "127.0.0.1:1", lambda user, password: None)
    assert settings.certificate is not None
    for path in (options["ssl.keystore.location"], settings.certificate):
        with open(path, "rb") as file:
            assert b"PRIVATE KEY" in file.read()
    assert stat.S_IMODE(settings.certificate.stat().st_mode) == 0o600
    assert security.settings("anna", "", lambda user, password: None).certificate == (
        settings.certificate
    )
    folder = settings.certificate.parent
    del security
    assert not folder.exists()


def test_password_is_not_part_of_the_representation() -> None:
    """Assertions of tests print settings."""
    security = ClusterSecurity("sasl_plaintext", {})
    created: list[tuple[str, str]] = []
    settings = security.settings("anna", "", lambda *user: created.append(user))
    assert created == [("anna", settings.password)]
    assert settings.password not in repr(settings)
    assert security.settings("anna", "", lambda *user: created.append(user)) == settings
    assert len(created) == 1
