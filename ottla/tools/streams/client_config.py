"""The file of --config-file: the client settings of Kafka's tools that Ottla's client supports."""

from dataclasses import dataclass

from ottla.base.errors import ConfigError
from ottla.client.security.options import SECURITY_OPTIONS, Security, security_of
from ottla.tools.connection.client_config import read_options
from ottla.tools.text_files import is_number

_SECURE = ("security.", "sasl.", "ssl.")
_TIMEOUTS = ("default.api.timeout.ms", "request.timeout.ms")


@dataclass(frozen=True)
class ClientConfig:
    """Settings of the client; `ignored` are the names in the file that have no effect."""

    bootstrap: str | None = None
    client_id: str = "ottla"
    timeout_s: float = 15.0
    ignored: tuple[str, ...] = ()
    security: Security | None = None


def read_client_config(file: str) -> ClientConfig:
    """Read a properties file; ConfigError for a setting that is wrong or not supported."""
    settings = read_options(file)
    timeouts = [settings[name] for name in _TIMEOUTS if name in settings]
    for text in timeouts[:1]:
        if not is_number(text, 32) or int(text) == 0:
            raise ConfigError(f"{file}: a timeout must be a number of milliseconds, not {text!r}.")
    known = {"bootstrap.servers", "client.id", *SECURITY_OPTIONS, *_TIMEOUTS}
    defaults = ClientConfig()
    return ClientConfig(
        settings.get("bootstrap.servers"),
        settings.get("client.id", defaults.client_id),
        int(timeouts[0]) / 1000 if timeouts else defaults.timeout_s,
        # With PLAINTEXT, Kafka's client ignores the settings for encryption and authentication,
        # too.
        tuple(name for name in settings if name not in known and not name.startswith(_SECURE)),
        security_of(settings),
    )
