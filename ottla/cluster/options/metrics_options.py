"""The broker options of the HTTP port for metrics and health."""

from ottla.base.options import OptionType, Scope
from ottla.cluster.options.option_rows import Rows


def parse_address(text: str) -> tuple[str, int] | None:
    """Return host and port of `host:port`; None if the text is not of this form."""
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) < 65536):
        return None
    return host.strip("[]"), int(port)


def check_address(value: str) -> str | None:
    """Return what is wrong with an address; None if it is `host:port`."""
    return None if parse_address(value) else "it must look like host:port"


_OWN = Rows(Scope.BROKER, dynamic=False)
ROWS = (
    _OWN.row(
        "metrics.listener",
        OptionType.STRING,
        None,
        "Ottla's own: host:port that serves /metrics for Prometheus (with the names of "
        "jmx_exporter and kafka_exporter), /healthz and /lag over HTTP. Off by default. Every client "
        "that can reach it can read the names of topics and groups.",
        check=check_address,
    ),
    _OWN.row(
        "search.enable",
        OptionType.BOOLEAN,
        False,
        "Ottla's own: serve /search at metrics.listener (docs/http.md). Every client that can reach "
        "the port can then read the records of every topic: it has no authentication.",
    ),
)
