"""The clusters that the options of `ottla console` describe."""

from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.client.security.options import security_of
from ottla.tools import main, profiles
from ottla.tools.console.listener import choose
from ottla.tools.console.running import clusters_of
from tests.certificates import pkcs12_store, self_signed

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_clusters_have_their_ensembles_and_http_ports() -> None:
    """Options of one cluster do not apply to another."""
    first, second = clusters_of(
        ("a=k1:9092", "b=k2:9092,k3:9092"),
        {"b": "z1:2181"},
        {"a/1": "http://k1:9644/", "a/2": "https://k4"},
        {},
    )
    assert (first.name, first.zookeeper) == ("a", None)
    assert first.http_urls == {1: "http://k1:9644", 2: "https://k4"}
    assert (second.bootstrap, second.zookeeper, second.http_urls) == (
        "k2:9092,k3:9092",
        "z1:2181",
        {},
    )


@pytest.mark.parametrize(
    ("zookeepers", "http_urls", "message"),
    [
        ({"c": "z:2181"}, {}, "--zookeeper names 'c', which no --cluster has"),
        ({}, {"c/1": "http://k"}, "--http-url names 'c', which no --cluster has"),
        ({}, {"a": "http://k"}, "not of the form NAME/BROKER=URL"),
        ({}, {"a/one": "http://k"}, "not of the form NAME/BROKER=URL"),
        ({}, {"a/1": "k:9644"}, "not of the form NAME/BROKER=URL"),
    ],
    ids=["ensemble", "port", "no broker", "no number", "no scheme"],
)
def test_a_wrong_option_is_named(
    zookeepers: dict[str, str], http_urls: dict[str, str], message: str
) -> None:
    """The message says how the option is written."""
    with pytest.raises(ConfigError, match=message):
        clusters_of(("a=k1:9092",), zookeepers, http_urls, {})


def write_options(folder: Path, user: str) -> str:
    """Write a file of options with the user's name and the password `secret`; return its path."""
    path = folder / f"{user}.properties"
    jaas = f'{_PLAIN} required username="{user}" password="secret";'
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n",
        "utf-8",
    )
    return str(path)


def test_a_file_of_options_belongs_to_one_cluster(tmp_path: Path) -> None:
    """The credentials of one cluster are not sent to another."""
    file = write_options(tmp_path, "ann")
    first, second = clusters_of(("a=k1:9092", "b=k2:9093"), {}, {}, {"b": file})
    assert (first.security_protocol, first.options) == ("PLAINTEXT", {})
    assert second.security_protocol == "SASL_PLAINTEXT"
    assert "ann" in second.options["sasl.jaas.config"]
    assert "secret" not in repr(second)


def test_a_profile_is_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the address and the file of the profile; an option of the console names another."""
    monkeypatch.setenv("OTTLA_CONFIG_DIR", str(tmp_path))
    file, other = write_options(tmp_path, "ann"), write_options(tmp_path, "bob")
    profiles.write(profiles.Profiles({"live": "k7:9093"}, "", {"live": file}))
    (cluster,) = clusters_of(("live",), {}, {}, {})
    assert (cluster.name, cluster.bootstrap) == ("live", "k7:9093")
    assert "ann" in cluster.options["sasl.jaas.config"]
    (cluster,) = clusters_of(("live",), {}, {}, {"live": other})
    assert "bob" in cluster.options["sasl.jaas.config"]
    with pytest.raises(ConfigError, match=r"'live2' is not a cluster.*profile \(there are: live\)"):
        clusters_of(("live2",), {}, {}, {})


def test_a_file_of_options_names_a_cluster() -> None:
    """As the other options of clusters do."""
    with pytest.raises(ConfigError, match="--command-config names 'c', which no --cluster has"):
        clusters_of(("a=k1:9092",), {}, {}, {"c": "file"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("security.protocol=TLS\n", "cluster 'a': security.protocol=TLS: use PLAINTEXT, SSL"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI\n", "GSSAPI is not supported: use"),
        ("security.protocol=SSL\nssl.truststore.location=/none\n", "ssl.truststore cannot be read"),
    ],
)
def test_a_wrong_file_of_options_stops_the_command(
    tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence names the cluster and the option; no console is started, no folder is made."""
    file = tmp_path / "client.properties"
    file.write_text(text, "utf-8")
    words = ["console", "--cluster", "a=k1:9092", "--command-config", f"a={file}"]
    folder = tmp_path / "data"
    assert main.run([*words, "--data", str(folder)]) == 1
    assert message in capsys.readouterr().err
    assert not folder.exists()


def test_a_missing_file_of_options_stops_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence has its path."""
    words = ["console", "--cluster", "a=k1:9092", "--command-config", f"a={tmp_path}/none"]
    assert main.run([*words, "--data", str(tmp_path / "data")]) == 1
    assert f"{tmp_path}/none" in capsys.readouterr().err


def test_console_beside_a_broker_prefers_a_listener_without_security(tmp_path: Path) -> None:
    """It may have another name, and come after listeners with security."""
    chosen = choose(
        {
            "listeners": "SSL://127.0.0.1:0,INNER://127.0.0.1:0",
            "listener.security.protocol.map": "INNER:PLAINTEXT",
            "ssl.keystore.location": str(self_signed(tmp_path)),
        }
    )
    assert chosen == ("INNER", {})


def test_console_beside_a_broker_uses_the_certificates_of_the_broker(tmp_path: Path) -> None:
    """It trusts the broker's own certificate; its key is no part of the options."""
    server, other = self_signed(tmp_path), self_signed(tmp_path, name="other")
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": str(server),
        "ssl.truststore.location": str(other.with_suffix(".crt")),
        "ssl.client.auth": "required",
    }
    name, options = choose(settings)
    assert (name, options["ssl.keystore.location"]) == ("SSL", str(server))
    certificates = options["ssl.truststore.certificates"]
    assert certificates.count("BEGIN CERTIFICATE") == 2
    assert "PRIVATE KEY" not in certificates
    assert "ssl.keystore.location" not in choose({**settings, "ssl.client.auth": "none"}).options


def test_console_beside_a_broker_reads_stores_in_pkcs12(tmp_path: Path) -> None:
    """Its clients get the texts in PEM."""
    store = pkcs12_store(self_signed(tmp_path))
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.client.auth": "required",
        **{f"ssl.{kind}.location": store.path for kind in ("keystore", "truststore")},
        **{f"ssl.{kind}.type": "PKCS12" for kind in ("keystore", "truststore")},
        **{f"ssl.{kind}.password": store.password for kind in ("keystore", "truststore")},
    }
    options = choose(settings).options
    assert options["ssl.keystore.key"].startswith("-----BEGIN PRIVATE KEY-----")
    assert options["ssl.truststore.certificates"].count("BEGIN CERTIFICATE") == 2
    assert security_of(options) is not None
    with pytest.raises(ConfigError, match=r"p12 cannot be read"):
        choose({**settings, "ssl.keystore.password": "wrong"})


def test_console_beside_a_broker_uses_the_user_of_the_broker() -> None:
    """Kafka's brokers name the user of a broker as `username` in the login module."""
    option = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "PLAIN"}
    module = f'{_PLAIN} required username="b" password="c" user_b="c";'
    assert choose({**settings, option: module}).options == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "b",
        "sasl.password": "c",
    }
    with pytest.raises(ConfigError, match=f"add a listener PLAINTEXT.* or set {option}"):
        choose({**settings, option: f'{_PLAIN} required user_b="c";'})
