"""A reader of the console without a browser: cookies, forms with their CSRF token, events."""

import html
import http.client
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

# The password of the users that the fixtures create.
PASSWORD = "a long password"
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')
_ALERT = re.compile(r'class="notice error" role="alert">(.*?)</p>', re.S)
_STATUS = re.compile(r'class="notice" role="status">(.*?)</p>', re.S)


class PageResponse(NamedTuple):
    """A response; `text` is its body, and `data` the same as bytes."""

    status: int
    headers: dict[str, str]
    text: str
    data: bytes = b""

    @property
    def alert(self) -> str:
        """The error that the page shows, or an empty text."""
        match = _ALERT.search(self.text)
        return html.unescape(match.group(1)) if match else ""

    @property
    def notice(self) -> str:
        """The success that the page shows, or an empty text."""
        match = _STATUS.search(self.text)
        return html.unescape(match.group(1)) if match else ""

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.text)


class ConsoleSession:
    """A user's session with a console at `url`; follows redirects."""

    def __init__(self, url: str) -> None:
        self.address = urlsplit(url).netloc
        self.cookies: dict[str, str] = {}

    def request(
        self, method: str, path: str, body: str = "", headers: dict[str, str] | None = None
    ) -> PageResponse:
        """Send one request and return the response, also a redirect."""
        connection = http.client.HTTPConnection(self.address, timeout=30)
        try:
            connection.request(method, path, body.encode() or None, self._headers(headers))
            response = connection.getresponse()
            for cookie in response.msg.get_all("set-cookie", []):
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name] = value.strip('"')
            data = response.read()
            text = data.decode(errors="replace")
            return PageResponse(response.status, dict(response.msg.items()), text, data)
        finally:
            connection.close()

    def get(self, path: str) -> PageResponse:
        """Return a page, after redirects."""
        response = self.request("GET", path)
        while response.status == 303:
            response = self.request("GET", response.headers["location"])
        return response

    def login(self, user: str, password: str) -> PageResponse:
        """Log in; return the next page."""
        form = urlencode({"user": user, "password": password})
        return self._follow(self.request("POST", "/login", form, FORM))

    def post(self, path: str, action: str, form: dict[str, Any] | None = None) -> PageResponse:
        """Send a form of the page with its CSRF token; return the next page."""
        fields = {"csrf": self.csrf(), "action": action, **(form or {})}
        return self._follow(self.request("POST", path, urlencode(fields, doseq=True), FORM))

    def csrf(self) -> str:
        """Return the token of this session's forms."""
        match = _CSRF.search(self.get("/account").text)
        assert match is not None, "the account page has a form"
        return match.group(1)

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """Yield the events of a stream with their data."""
        connection = http.client.HTTPConnection(self.address, timeout=30)
        try:
            connection.request("GET", path, headers=self._headers(None))
            response = connection.getresponse()
            assert response.status == 200, response.read()
            name = ""
            for line in response:
                key, _, value = line.decode().rstrip("\n").partition(": ")
                if key == "event":
                    name = value
                elif key == "data":
                    yield name, json.loads(value)
        finally:
            connection.close()

    def _follow(self, response: PageResponse) -> PageResponse:
        return self.get(response.headers["location"]) if response.status == 303 else response

    def _headers(self, headers: dict[str, str] | None) -> dict[str, str]:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {"cookie": cookies, **(headers or {})} if cookies else headers or {}


FORM = {"content-type": "application/x-www-form-urlencoded"}
