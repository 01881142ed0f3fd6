"""Values of options that Kafka's clients accept, and their sentences for others.

The scripts' recorded transcript `client_options` has what Apache Kafka's tools print.
"""

import pytest

from ottla.base.errors import ConfigError
from ottla.client.config.names import Role
from ottla_scripts.definitions import check_options


@pytest.mark.parametrize(
    ("role", "name", "text"),
    [
        (Role.CONSUMER, "max.poll.records", " +5 "),
        (Role.CONSUMER, "fetch.max.bytes", "2147483647"),
        (Role.CONSUMER, "check.crcs", "TRUE"),
        (Role.CONSUMER, "auto.offset.reset", "by_duration:PT1H"),
        (Role.CONSUMER, "group.protocol", "consumer"),
        (Role.CONSUMER, "sasl.login.refresh.window.factor", ".8d"),
        (Role.CONSUMER, "sasl.kerberos.ticket.renew.jitter", "NaN"),
        (Role.PRODUCER, "compression.gzip.level", "-1"),
        (Role.PRODUCER, "compression.zstd.level", "-131072"),
        (Role.PRODUCER, "max.block.ms", "9223372036854775807"),
        (Role.ADMIN, "receive.buffer.bytes", "-1"),
        (Role.ADMIN, "security.protocol", "ssl"),
    ],
)
def test_values_of_java_are_accepted(role: Role, name: str, text: str) -> None:
    """Spaces around a value, signs, capital letters and Java's forms of numbers are allowed."""
    assert check_options(role, {name: text}) is None


@pytest.mark.parametrize(
    ("role", "name", "text", "reason"),
    [
        (Role.CONSUMER, "max.poll.records", "5.0", "Not a number of type INT"),
        (Role.CONSUMER, "fetch.max.bytes", "2147483648", "Not a number of type INT"),
        (Role.CONSUMER, "max.poll.records", "5_0", "Not a number of type INT"),
        (Role.CONSUMER, "sasl.kerberos.ticket.renew.jitter", "1_0", "Not a number of type DOUBLE"),
        (Role.PRODUCER, "max.block.ms", "9223372036854775808", "Not a number of type LONG"),
        (Role.PRODUCER, "max.block.ms", "", "Not a number of type LONG"),
        (Role.PRODUCER, "compression.lz4.level", "18", "Value must be no more than 17"),
        (Role.ADMIN, "receive.buffer.bytes", "-2", "Value must be at least -1"),
    ],
)
def test_other_values_are_rejected(role: Role, name: str, text: str, reason: str) -> None:
    """The error has the value, the option and what is wrong, as in ConfigDef."""
    with pytest.raises(ConfigError) as raised:
        check_options(role, {name: text})
    assert str(raised.value) == f"Invalid value {text} for configuration {name}: {reason}"


def test_a_client_checks_only_its_own_options() -> None:
    """One file may have the options of several clients."""
    options = {"fetch.min.bytes": "x", "max.block.ms": "x", "application": "x"}
    check_options(Role.ADMIN, options)
    with pytest.raises(ConfigError, match=r"fetch\.min\.bytes"):
        check_options(Role.CONSUMER, options)
    with pytest.raises(ConfigError, match=r"max\.block\.ms"):
        check_options(Role.PRODUCER, options)


def test_the_first_definition_is_reported_of_several_wrong_values() -> None:
    """The order is ConsumerConfig's, not the file's."""
    options = {"max.poll.records": "x", "client.dns.lookup": "x"}
    with pytest.raises(ConfigError, match=r"client\.dns\.lookup"):
        check_options(Role.CONSUMER, options)
