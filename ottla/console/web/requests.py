"""A request and a reply as plain values, so that all rules can be tested without a server."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

SESSION_COOKIE = "ottla_session"
LANGUAGE_COOKIE = "ottla_language"
THEME_COOKIE = "ottla_theme"
THEMES = ("auto", "light", "dark")
# Only scripts and styles of the console itself: no inline code, no other origin, no frames.
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Request(NamedTuple):
    """A request; `query` and `body` are still encoded.

    `is_same_origin` is False if the browser says that another site sent it (Sec-Fetch-Site, or an
    Origin that is not the host). `is_secure` is True over HTTPS.
    """

    method: str
    path: str
    params: Mapping[str, str]
    query: str
    body: bytes
    headers: Mapping[str, str]
    cookies: Mapping[str, str]
    client: str
    is_same_origin: bool = True
    is_secure: bool = False

    @property
    def here(self) -> str:
        """The path with its query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def theme(self) -> str:
        """The theme of the cookie; `auto` follows the system."""
        theme = self.cookies.get(THEME_COOKIE, "")
        return theme if theme in THEMES else "auto"


class Cookie(NamedTuple):
    """A cookie to set; without `max_age_s` it ends with the browser, with 0 it is deleted."""

    name: str
    value: str
    max_age_s: int | None = None
    is_hidden: bool = True


class Reply(NamedTuple):
    """A reply; a `location` makes it a redirect. The chunks of a download are bytes.

    A reply with `stop` is an endless stream: `stop` is called when the browser has closed it.
    """

    status: int = 200
    body: str | bytes | Iterable[bytes] = ""
    media_type: str = "text/html; charset=utf-8"
    location: str = ""
    headers: Mapping[str, str] = {}
    cookies: tuple[Cookie, ...] = ()
    stop: Callable[[], None] | None = None


def redirect(location: str, *cookies: Cookie) -> Reply:
    """Send the browser to another page; it reads that with GET."""
    return Reply(303, location=location, cookies=cookies)


def is_local_path(path: str) -> bool:
    """Return True for a path of this console; False for `//host` and `/\\host`."""
    return path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
