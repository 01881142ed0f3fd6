"""What `ottla up` tells the broker: defaults, a configuration file, --option, and the short options."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.errors import ConfigError
from ottla.cluster.options import BROKER_OPTIONS, nearest

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_DATA = "./ottla-data"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The command line of `ottla up`; None where an option was not given."""

    host: str | None = None
    port: int | None = None
    data: str | None = None
    metrics_port: int | None = None
    options: Mapping[str, str]
    file: Mapping[str, str]


def broker_settings(given: UpOptions) -> dict[str, str]:
    """Return the broker's settings: what is said more specifically counts.

    ConfigError for an --option that does not exist; a file may name options of plug-ins, as in Kafka.
    """
    for name in given.options:
        if name not in BROKER_OPTIONS.rows:
            meant = nearest(name, BROKER_OPTIONS.rows)
            hint = f"did you mean {meant}?" if meant else "docs/options.md lists them all"
            raise ConfigError(f"There is no broker option {name}: {hint}")
    settings = {**given.file, **given.options}
    if given.host is not None or given.port is not None or "listeners" not in settings:
        host = DEFAULT_HOST if given.host is None else given.host
        port = DEFAULT_PORT if given.port is None else given.port
        shown = f"[{host}]" if ":" in host else host
        settings["listeners"] = f"PLAINTEXT://{shown}:{port}"
    if given.data is not None or not settings.keys() & {"log.dirs", "log.dir"}:
        settings["log.dirs"] = DEFAULT_DATA if given.data is None else given.data
    if given.metrics_port is not None:
        settings["metrics.listener"] = f"{DEFAULT_HOST}:{given.metrics_port}"
    return settings
