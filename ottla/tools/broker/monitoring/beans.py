"""Beans over HTTP, in the form of Jolokia: the pages `/jmx/…` of a broker (docs/http.md).

The URL of a Jolokia agent leads to the beans of a JVM.
"""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from ottla.base.errors import OttlaError
from ottla.net.web_requests import WebRequest, send_directly, url_of

Attributes = Mapping[str, Any]
PATH = "/jmx"
_TIMEOUT_S = 30.0
_BYTES_MAX = 64 << 20
# Jolokia's escapes inside of a part of the path.
_SPECIAL = re.compile(r"[!/\"]")
# Names have the form of their registration, as JMX itself returns them.
_OPTIONS = "canonicalNaming=false"
_MISSING = "javax.management.InstanceNotFoundException"


class Address(NamedTuple):
    """The HTTP port, and the path under which the beans are."""

    host: str
    port: int
    path: str = PATH
    is_tls: bool = False

    def url_of(self, path: str) -> str:
        """Return the URL of a path on this port."""
        return url_of(self.host, self.port, path, is_tls=self.is_tls)


class BeanError(OttlaError):
    """The server rejects a request; `is_missing`: there is no such bean."""

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


class BeanReader:
    """Reads the beans at one address; `credentials` are user and password for a proxy before it.

    Errors have `name`, by which the user has named the address, and `forms`, in which it could be
    named instead.
    """

    def __init__(
        self,
        address: Address,
        name: str,
        forms: str,
        *,
        credentials: tuple[str, str] | None = None,
    ) -> None:
        self.address = address
        self._name, self._forms = name, forms
        self._headers = {}
        if credentials is not None:
            token = base64.b64encode(":".join(credentials).encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"

    def answers(self) -> bool:
        """Return True if something listens; OttlaError if it serves no beans."""
        try:
            self._ask("version")
        except ConnectionRefusedError:
            return False
        return True

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
        path = f"{'/'.join((self.address.path, *escaped))}?{_OPTIONS}"
        try:
            response = send_directly(
                WebRequest(self.address.url_of(path), headers=self._headers),
                timeout_s=_TIMEOUT_S,
                bytes_max=_BYTES_MAX,
            )
            answer = json.loads(response.body)
        except ConnectionRefusedError:
            raise
        except (OSError, ValueError) as error:
            raise OttlaError(self._no_http(error)) from error
        if not isinstance(answer, dict) or "value" not in answer:
            kind = str(dict(answer).get("error_type", "")) if isinstance(answer, dict) else ""
            reason = answer.get("error", "") if isinstance(answer, dict) else ""
            message = (
                str(reason) or f"{self._name} responds with status {response.status}, without beans"
            )
            raise BeanError(message, is_missing=kind == _MISSING)
        return answer["value"]

    def _no_http(self, error: Exception) -> str:
        reason = str(error) or type(error).__name__
        return (
            f"{self._name} does not serve beans over HTTP ({reason}). The JMX port of a JVM (RMI) cannot be "
            f"read: use {self._forms}"
        )
