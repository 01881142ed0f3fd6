"""The connection for the offsets of a group: which options it needs."""

from typing import Any

import pytest

from ottla.client.config.names import Role
from ottla.client.config.settings import read_settings
from ottla.client.consumer.options import coordinator_thread, names_to_subscribe
from ottla.client.errors import ClientError


@pytest.mark.parametrize(
    ("options", "has_thread"),
    [
        ({"group_id": "g"}, True),
        ({"group_id": "g", "ssl.protocol": "TLSv1.3"}, True),
        ({"group_id": "g", "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN",
          "sasl_username": "ann", "sasl_password": "secret"}, True),
        ({"group_id": "g", "ssl_crl_location": "revoked.pem"}, False),
        ({"group_id": "g", "security_protocol": "SSL", "ssl_keystore_location": "k.p12"}, False),
        ({"group_id": "g", "partition_assignment_strategy": "sticky"}, True),
        ({}, False),
    ],
)  # fmt: skip
def test_librdkafka_is_asked_with_options_that_only_it_has(
    options: dict[str, Any], has_thread: bool
) -> None:
    """A list of revoked certificates, for one, must not be ignored by a second connection."""
    settings = read_settings(Role.CONSUMER, None, options)
    assert (coordinator_thread(settings, 1.0) is not None) is has_thread


@pytest.mark.parametrize("name", ["\udcff", "a\0b"])
def test_name_that_is_no_text_of_the_protocol(name: str) -> None:
    """The consumer refuses it before librdkafka's binding, which would end the process."""
    with pytest.raises(ClientError, match="a name is a text without NUL characters"):
        names_to_subscribe(read_settings(Role.CONSUMER, None, {"group_id": "g"}), ["t", name])


def test_list_is_not_a_name() -> None:
    """Topics are separate arguments of a consumer."""
    settings = read_settings(Role.CONSUMER, None, {"group_id": "g"})
    with pytest.raises(ClientError, match=r"cannot subscribe to \['t'\]: a name is a text"):
        names_to_subscribe(settings, [["t"]])  # type: ignore[list-item]
