"""The user of a ZooKeeper session: JAAS files as Java reads them."""

import pytest

from ottla.base.errors import ConfigError
from ottla.security.zookeeper.login import Login, LoginSettings, system_properties

JAAS = """
// A comment; with "signs" { }
KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required
    username="admin" password="other"; };
/* Client { nothing }; */
Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="kafka"
    password="a;b \\"quoted\\" }";
};
Second { org.apache.zookeeper.server.auth.DigestLoginModule required username="}" password=";"; };
"""
FILE = "-Djava.security.auth.login.config=/etc/jaas.conf"


def login(options: str, text: str = JAAS) -> Login | None:
    """Return the login of these Java options and this file."""
    return LoginSettings.of({"KAFKA_OPTS": options}).login(lambda _: text.encode())


def test_user_is_that_of_the_section_client() -> None:
    """Values may contain signs of the format, and escaped quotation marks."""
    found = login(f"-Xmx1g {FILE}")
    assert found == Login("kafka", 'a;b "quoted" }', "section Client of /etc/jaas.conf")


def test_another_section_can_be_named() -> None:
    """`zookeeper.sasl.clientconfig` selects it; a value may look like a sign of the format."""
    found = login(f"{FILE} -Dzookeeper.sasl.clientconfig=Second")
    assert found is not None
    assert found[:2] == ("}", ";")


@pytest.mark.parametrize(
    "options",
    ["", f"{FILE} -Dzookeeper.sasl.clientconfig=None", f"{FILE} -Dzookeeper.sasl.client=false"],
)
def test_session_without_a_login(options: str) -> None:
    """Without a file, without the section, or with the login switched off."""
    assert login(options) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "Client { Module required username=a debug=true; };",
            "Client of /etc/jaas.conf has no password",
        ),
        ("Client { Krb5LoginModule required useKeyTab=true; };", "no username and no password"),
        ("Client { Module required username=a;", "malformed at 'Client': write Client {"),
        ("Client {} Other", "malformed at 'Client'"),
    ],
)
def test_file_that_names_no_user_is_an_error(text: str, sentence: str) -> None:
    """The error names the section or the place, and shows how one is written."""
    with pytest.raises(ConfigError, match=sentence):
        login(FILE, text)


def test_file_that_cannot_be_read_is_an_error() -> None:
    """The error names the file and the variable."""

    def read(path: str) -> bytes:
        raise FileNotFoundError(2, "No such file or directory", path)

    with pytest.raises(ConfigError, match=r"'/etc/jaas.conf' cannot be read .*in KAFKA_OPTS"):
        LoginSettings.of({"KAFKA_OPTS": FILE}).login(read)


def test_properties_are_those_of_java_options() -> None:
    """Quoted values may contain blanks; a property without a value is empty."""
    assert system_properties("-Da=1 '-Db=2 3' -Dc -server") == {"a": "1", "b": "2 3", "c": ""}
    with pytest.raises(ConfigError, match="KAFKA_OPTS cannot be read"):
        system_properties("-Da='")
