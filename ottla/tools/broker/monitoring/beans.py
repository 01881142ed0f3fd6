"""Beans over HTTP, in the form of Jolokia: the pages `/jmx/…` of a broker (docs/http.md).

A broker of Ottla is a Python process, which has no JMX port (RMI). A URL of Java's form,
`service:jmx:rmi:///jndi/rmi://HOST:PORT/jmxrmi`, therefore means `http://HOST:PORT/jmx`: scripts
work unchanged if `metrics.listener` has the port that JMX had. The URL of a Jolokia agent leads to
the beans of a JVM.
"""

import base64
import http.client
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from ottla.base.errors import OttlaError
from ottla.tools.scripts.exits import UsageError

Attributes = Mapping[str, Any]
_RMI = re.compile(r"service:jmx:rmi://[^/]*/jndi/rmi://([^/:]*|\[[^\]]*\]):(\d+)/.*")
_TIMEOUT_S = 30.0
_PATIENCE_MS = 10_000
_PAUSE_S = 0.1
# Jolokia's escapes inside of a part of the path.
_SPECIAL = re.compile(r"[!/\"]")
# Names are those of the registration, as JMX itself returns them.
_OPTIONS = "canonicalNaming=false"
_MISSING = "javax.management.InstanceNotFoundException"
_FORMS = (
    "http://HOST:PORT/jmx, or service:jmx:rmi:///jndi/rmi://HOST:PORT/jmxrmi, "
    "with the port of the broker's metrics.listener"
)


class Address(NamedTuple):
    """The HTTP port, and the path under which the beans are."""

    host: str
    port: int
    path: str
    is_tls: bool


class BeanError(OttlaError):
    """The server rejects a request; `is_missing`: there is no such bean."""

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


def address_of(url: str, *, is_tls: bool = False) -> Address:
    """Return the HTTP address for a JMX URL; UsageError for other forms."""
    java = _RMI.fullmatch(url)
    if java is not None:
        host = java.group(1).strip("[]") or "127.0.0.1"
        return Address(host, int(java.group(2)), "/jmx", is_tls)
    parts = urlsplit(url if "://" in url else f"//{url}", scheme="http")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname or port is None:
        raise UsageError(f"cannot read the JMX URL '{url}': use {_FORMS}")
    path = parts.path.rstrip("/") or "/jmx"
    return Address(parts.hostname, port, path, is_tls or parts.scheme == "https")


class BeanReader:
    """Reads the beans at one URL; `credentials` are `user` and `password` for a proxy before it."""

    def __init__(
        self, url: str, *, is_tls: bool = False, credentials: tuple[str, str] | None = None
    ) -> None:
        self._url = url
        self._address = address_of(url, is_tls=is_tls)
        self._headers = {}
        if credentials is not None:
            token = base64.b64encode(":".join(credentials).encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"

    def connect(self) -> None:
        """Wait until the port answers, for 10 s as JmxTool does; OttlaError if it does not."""

        def answers() -> bool:
            try:
                self._ask("version")
            except ConnectionError:
                return False
            return True

        if not wait_until(answers):
            raise OttlaError(
                f"Could not connect to JMX url {self._url} after {_PATIENCE_MS} ms. Nothing serves "
                f"http://{self._address.host}:{self._address.port}: set the broker's option "
                "metrics.listener=HOST:PORT (JMX_PORT for kafka-server-start), and name it as "
                f"--jmx-url http://HOST:PORT/jmx"
            )

    def names(self, pattern: str) -> list[str]:
        """Return the names of the beans that match a pattern, or that have exactly this name."""
        return list(self._ask("search", pattern))

    def read(self, pattern: str) -> dict[str, Attributes]:
        """Return the attributes of the beans that match a pattern, which has wildcards."""
        return dict(self._ask("read", pattern))

    def read_one(self, name: str) -> Attributes:
        """Return the attributes of one bean; BeanError if it is missing."""
        return dict(self._ask("read", name))

    def _ask(self, *parts: str) -> Any:
        escaped = (quote(_SPECIAL.sub(r"!\g<0>", part), safe="!:=,*/") for part in parts)
        path = f"{'/'.join((self._address.path, *escaped))}?{_OPTIONS}"
        try:
            status, body = self._get(path)
            answer = json.loads(body)
        except ConnectionRefusedError:
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise OttlaError(self._no_http(error)) from error
        if not isinstance(answer, dict) or "value" not in answer:
            kind = str(dict(answer).get("error_type", "")) if isinstance(answer, dict) else ""
            reason = answer.get("error", "") if isinstance(answer, dict) else ""
            message = str(reason) or f"{self._url} answers with status {status}, without beans"
            raise BeanError(message, is_missing=kind == _MISSING)
        return answer["value"]

    def _get(self, path: str) -> tuple[int, bytes]:
        kind = http.client.HTTPSConnection if self._address.is_tls else http.client.HTTPConnection
        connection = kind(self._address.host, self._address.port, timeout=_TIMEOUT_S)
        try:
            connection.request("GET", path, headers=self._headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _no_http(self, error: Exception) -> str:
        reason = str(error) or type(error).__name__
        return (
            f"{self._url} does not serve beans over HTTP ({reason}). The JMX port of a JVM (RMI) cannot be "
            f"read: use {_FORMS}; for Apache Kafka, the URL of a Jolokia agent"
        )


def wait_until(condition: Callable[[], bool], on_retry: Callable[[], None] = lambda: None) -> bool:
    """Evaluate a condition every 100 ms until it is true; return False after 10 s."""
    deadline = time.monotonic() + _PATIENCE_MS / 1000
    while not condition():
        if time.monotonic() >= deadline:
            return False
        on_retry()
        time.sleep(_PAUSE_S)
    return True
