"""TLS and SASL in pipeline files: options without secrets, which come from elsewhere."""

from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.streams.pipelines import Pipeline, check
from ottla.streams.pipelines.explaining import explain
from ottla.streams.pipelines.model import Security, TopicSink
from ottla.streams.pipelines.security import resolved_security

_FILE = """\
name: secured
bootstrap: here:9093
security: {security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: ann, password_variable: HUSH}
sources:
  flights: {topic: flights}
sinks:
  late: {from: flights, topic: late}
  copies: {from: flights, topic: late, bootstrap: there:9093, security: {config: there.properties}}
"""


def read(text: str = _FILE) -> Pipeline:
    """Return the pipeline of a file without mistakes."""
    checked = check(text)
    assert checked.pipeline is not None, checked.problems
    return checked.pipeline


def problem(old: str, new: str) -> str:
    """Return the only problem of a changed file."""
    (result,) = check(_FILE.replace(old, new)).problems
    return str(result)


def test_a_password_comes_from_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The description of the pipeline does not have it."""
    monkeypatch.setenv("HUSH", "secret words")
    pipeline = read()
    assert resolved_security(pipeline.security, "the pipeline") == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "secret words",
    }
    assert "secret words" not in f"{pipeline} {explain(pipeline)}"
    monkeypatch.delenv("HUSH")
    with pytest.raises(ConfigError, match="the pipeline: the environment variable HUSH, which"):
        resolved_security(pipeline.security, "the pipeline")


def test_a_properties_file_has_the_options_of_another_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other options in it have no effect; those in the pipeline file have precedence."""
    sink = read().sinks["copies"]
    assert isinstance(sink, TopicSink)
    assert sink.security == Security(config="there.properties")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ConfigError, match=r"sink copies: there\.properties cannot be read: No such"
    ):
        resolved_security(sink.security, "sink copies")
    Path("there.properties").write_text("security.protocol=SSL\ngroup.id=g\nssl.ca.location=a\n")
    named = {"ssl.ca.location": "nowhere.pem"}
    with pytest.raises(ConfigError, match=r"sink copies: .*ssl\.truststore.*nowhere\.pem"):
        resolved_security(Security(options=named, config="there.properties"), "sink copies")
    Path("there.properties").write_text("security.protocol=SSL\ngroup.id=g\n")
    assert resolved_security(sink.security, "sink copies") == {"security.protocol": "SSL"}
    assert resolved_security(None, "sink late") == {}


@pytest.mark.parametrize("name", ["sasl.password", "sasl.jaas.config", "ssl.keystore.key"])
def test_secrets_in_a_file_are_rejected(name: str) -> None:
    """The message says where to put them, and does not repeat them."""
    text = problem("sasl.username: ann", f"{name}: hush")
    assert f"security: do not write {name} into a file: name a properties file" in text
    assert "hush" not in text


def test_mistakes_are_reported_with_their_line() -> None:
    """Unknown names, and options of a cluster that is not named."""
    text = problem("sasl.mechanism:", "sasl.mechanisme:")
    assert text.startswith("line 3, ")
    assert "unknown key sasl.mechanisme. Did you mean sasl.mechanism" in text
    text = problem("bootstrap: there:9093, ", "")
    assert "sink copies: security is for another cluster: name it with bootstrap." in text
