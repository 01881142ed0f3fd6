"""The file of --config-file: what Kafka's tools tell their clients, as far as Ottla's client is told it, too."""

from dataclasses import dataclass
from pathlib import Path

from ottla.base.errors import ConfigError
from ottla.tools.broker.properties import parse_properties

_SECURE = ("security.", "sasl.", "ssl.")
_TIMEOUTS = ("default.api.timeout.ms", "request.timeout.ms")


@dataclass(frozen=True)
class ClientConfig:
    """Settings of the client; `ignored` are names in the file that mean nothing to it."""

    bootstrap: str | None = None
    client_id: str = "ottla"
    timeout_s: float = 15.0
    ignored: tuple[str, ...] = ()


def read_client_config(file: str) -> ClientConfig:
    """Return what a properties file says; ConfigError where it asks for encryption or a login."""
    told = parse_properties(Path(file).read_text(encoding="utf-8"), file)
    if told.get("security.protocol", "PLAINTEXT") != "PLAINTEXT":
        raise ConfigError(
            f"{file}: security.protocol={told['security.protocol']} cannot be had here, Ottla's client speaks "
            "PLAINTEXT: name a listener of that kind, or use kafka-streams-application-reset and remove the "
            "checkpoint by hand."
        )
    timeouts = [told[name] for name in _TIMEOUTS if name in told]
    for text in timeouts[:1]:
        if not text.isdecimal() or text == "0":
            raise ConfigError(f"{file}: a time-out is milliseconds, not {text!r}.")
    known = {"bootstrap.servers", "client.id", "security.protocol", *_TIMEOUTS}
    defaults = ClientConfig()
    return ClientConfig(
        told.get("bootstrap.servers"),
        told.get("client.id", defaults.client_id),
        int(timeouts[0]) / 1000 if timeouts else defaults.timeout_s,
        # With PLAINTEXT, what says how to encrypt or log in does nothing in Kafka's client either.
        tuple(each for each in told if each not in known and not each.startswith(_SECURE)),
    )
