"""A broker whose users of PLAIN are in a file."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from ottla.base.errors import ConfigError
from ottla.security import scram
from ottla.testing import Cluster


def write(path: Path, **passwords: str) -> None:
    """Write users with their passwords."""
    users = {
        user: scram.credential_of_password(scram.USERS_MECHANISM, password, bytes(16), 4096)
        for user, password in passwords.items()
    }
    path.write_text(scram.users_text(users))


def log_in(cluster: Cluster, user: str) -> None:
    """Send a request as a user with the password `secret`; an exception if that fails."""
    client = AdminClient(
        {
            "bootstrap.servers": cluster.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": "secret",
            "log_level": 0,
        }
    )
    client.list_topics(timeout=20)


def test_users_of_the_file_log_in(tmp_path: Path) -> None:
    """A change counts without a restart; without the file the broker does not start."""
    path = tmp_path / "users"
    options = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.sasl.plain.users.file": str(path),
    }
    with pytest.raises(ConfigError, match="the users of PLAIN in"):
        Cluster(options=options).start()
    write(path, ann="secret")
    with Cluster(options=options) as cluster:
        log_in(cluster, "ann")
        write(path, ben="secret")
        log_in(cluster, "ben")
