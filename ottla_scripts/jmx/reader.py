"""The addresses of beans as `kafka-jmx` names them, and JmxTool's patience.

A broker of Ottla is a Python process, which has no JMX port (RMI). A URL of Java's form,
`service:jmx:rmi:///jndi/rmi://HOST:PORT/jmxrmi`, therefore means `http://HOST:PORT/jmx`: scripts
work unchanged if `metrics.listener` has the port that JMX had.
"""

import re
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from ottla.base.errors import OttlaError
from ottla.tools.broker.monitoring.beans import PATH, Address, BeanReader
from ottla_scripts.exits import UsageError

_RMI = re.compile(r"service:jmx:rmi://[^/]*/jndi/rmi://([^/:]*|\[[^\]]*\]):(\d+)/.*")
_PATIENCE_MS = 10_000
_PAUSE_S = 0.1
_FORMS = (
    "http://HOST:PORT/jmx, or service:jmx:rmi:///jndi/rmi://HOST:PORT/jmxrmi, "
    "with the port of the broker's metrics.listener"
)
_JOLOKIA = "for Apache Kafka, the URL of a Jolokia agent"


def address_of(url: str, *, is_tls: bool = False) -> Address:
    """Return the HTTP address for a JMX URL; UsageError for other forms."""
    java = _RMI.fullmatch(url)
    if java is not None:
        host = java.group(1).strip("[]") or "127.0.0.1"
        return Address(host, int(java.group(2)), PATH, is_tls)
    parts = urlsplit(url if "://" in url else f"//{url}", scheme="http")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname or port is None:
        raise UsageError(f"cannot read the JMX URL '{url}': use {_FORMS}")
    path = parts.path.rstrip("/") or PATH
    return Address(parts.hostname, port, path, is_tls or parts.scheme == "https")


def connect(url: str, *, is_tls: bool, credentials: tuple[str, str] | None) -> BeanReader:
    """Wait until the port responds, for 10 s as JmxTool does; OttlaError if it does not."""
    address = address_of(url, is_tls=is_tls)
    beans = BeanReader(address, url, f"{_FORMS}; {_JOLOKIA}", credentials=credentials)
    if not wait_until(beans.answers):
        raise OttlaError(
            f"Could not connect to JMX url {url} after {_PATIENCE_MS} ms. Nothing serves "
            f"http://{address.host}:{address.port}: set the broker's option "
            "metrics.listener=HOST:PORT (JMX_PORT for kafka-server-start), and name it as "
            "--jmx-url http://HOST:PORT/jmx"
        )
    return beans


def wait_until(condition: Callable[[], bool], on_retry: Callable[[], None] = lambda: None) -> bool:
    """Evaluate a condition every 100 ms until it is true; return False after 10 s."""
    deadline = time.monotonic() + _PATIENCE_MS / 1000
    while not condition():
        if time.monotonic() >= deadline:
            return False
        on_retry()
        time.sleep(_PAUSE_S)
    return True
