"""The file of --config-file: the client settings of Kafka's tools that Ottla's client supports."""

from dataclasses import dataclass
from pathlib import Path

from ottla.base.errors import ConfigError
from ottla.client.config.properties import parse_properties

_SECURE = ("security.", "sasl.", "ssl.")
_TIMEOUTS = ("default.api.timeout.ms", "request.timeout.ms")


@dataclass(frozen=True)
class ClientConfig:
    """Settings of the client; `ignored` are the names in the file that have no effect."""

    bootstrap: str | None = None
    client_id: str = "ottla"
    timeout_s: float = 15.0
    ignored: tuple[str, ...] = ()


def read_client_config(file: str) -> ClientConfig:
    """Read a properties file; ConfigError if it requires encryption or authentication."""
    settings = parse_properties(Path(file).read_text(encoding="utf-8"), file)
    if settings.get("security.protocol", "PLAINTEXT") != "PLAINTEXT":
        raise ConfigError(
            f"{file}: security.protocol={settings['security.protocol']} is not supported, Ottla's client only speaks "
            "PLAINTEXT: use a PLAINTEXT listener, or use kafka-streams-application-reset and remove the "
            "checkpoint manually."
        )
    timeouts = [settings[name] for name in _TIMEOUTS if name in settings]
    for text in timeouts[:1]:
        if not text.isdecimal() or text == "0":
            raise ConfigError(f"{file}: a timeout must be a number of milliseconds, not {text!r}.")
    known = {"bootstrap.servers", "client.id", "security.protocol", *_TIMEOUTS}
    defaults = ClientConfig()
    return ClientConfig(
        settings.get("bootstrap.servers"),
        settings.get("client.id", defaults.client_id),
        int(timeouts[0]) / 1000 if timeouts else defaults.timeout_s,
        # With PLAINTEXT, Kafka's client ignores the settings for encryption and authentication,
        # too.
        tuple(name for name in settings if name not in known and not name.startswith(_SECURE)),
    )
