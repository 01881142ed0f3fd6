"""The examples of docs/tables.md work as shown, against a broker with TLS and passwords."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.admin import scram
from ottla.client.admin.scram import ScramMechanism, ScramUpsertion
from ottla.client.arrow_table import read_table
from ottla.client.errors import ClientError
from ottla.testing import Cluster
from tests.certificates import self_signed, tls_options

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tables.md"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A broker with a plain listener, and one that needs TLS and the password of ann."""
    options = {
        **tls_options(tmp_path),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    with Cluster(options=options) as running:
        with running.admin() as brokers:
            mechanism = ScramMechanism.SCRAM_SHA_512
            scram.alter_user_scram_credentials(
                brokers, [ScramUpsertion("ann", mechanism, "secret")]
            )
        running.create_topic("orders")
        yield running


def test_examples_of_the_page(cluster: Cluster, tmp_path: Path) -> None:
    """The blocks run one after the other in one namespace, and contain their assertions."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 6
    names = {
        "bootstrap": cluster.bootstrap_of("PLAINTEXT"),
        "secured": cluster.bootstrap_of("SASL_SSL"),
        "folder": tmp_path,
    }
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)


def test_an_unknown_certificate_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """The password is not sent to a server that the client does not trust."""
    self_signed(tmp_path, name="other")
    config = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(tmp_path / "other.crt"),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ann",
        "sasl.password": "secret",
    }
    with pytest.raises(ClientError, match="verify failed"):
        read_table("orders", bootstrap=cluster.bootstrap_of("SASL_SSL"), config=config)


def test_a_misspelt_argument_is_named_before_a_connection() -> None:
    """The error is that of a call with a wrong keyword, and nothing listens at the address."""
    with pytest.raises(TypeError, match=r"read_table\(\) got an unexpected .* 'colums'"):
        read_table("orders", bootstrap="127.0.0.1:1", colums=["key"])  # type: ignore[call-arg]
