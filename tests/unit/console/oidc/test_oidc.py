"""Logins with an identity provider: whose tokens count, which browser, which user, which role."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from ottla.base.errors import ConfigError
from ottla.console.accounts import passwords
from ottla.console.accounts.roles import Role
from ottla.console.oidc import provider as module
from ottla.console.oidc.settings import OidcSettings, parse_oidc
from ottla.console.state import Console, ConsoleSettings, open_console
from ottla.console.web.oidc import begin_login, finish_login
from ottla.console.web.requests import SESSION_COOKIE, Reply, Request
from ottla.net.web_requests import WebRequest, WebResponse
from ottla.operations.survey.connections import ClusterSettings
from tests.unit.console.clocks import SetClock

ISSUER = "https://login.example"
SETTINGS = OidcSettings(
    ISSUER, "console", "https://console.example", "s3cret", roles={"admins": Role.ADMIN}
)
KEY = RSAKey.generate_key(2048, {"kid": "one"}, private=True)
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "one"}, private=True)


class FakeProvider:
    """Serves metadata, keys and a token whose claims a test changes."""

    def __init__(self, clock: SetClock) -> None:
        self.clock = clock
        self.claims: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.key = KEY
        self.forms: list[dict[str, list[str]]] = []

    def send(self, request: WebRequest, *, timeout_s: float) -> WebResponse:
        """Respond to a request."""
        path = urlsplit(request.url).path
        body: dict[str, Any]
        if path == "/.well-known/openid-configuration":
            body = {
                "issuer": ISSUER,
                "authorization_endpoint": f"{ISSUER}/auth",
                "token_endpoint": f"{ISSUER}/token",
                "jwks_uri": f"{ISSUER}/keys",
                **self.metadata,
            }
        elif path == "/keys":
            body = KeySet([KEY]).as_dict(private=False)
        else:
            self.forms.append(parse_qs((request.body or b"").decode()))
            token = jwt.encode({"alg": "RS256", "kid": "one"}, self.claims, self.key)
            body = {"id_token": token}
        return WebResponse(200, json.dumps(body).encode())


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    """Return a provider that the console reaches."""
    fake = FakeProvider(SetClock())
    monkeypatch.setattr(module, "send", fake.send)
    monkeypatch.setattr(passwords, "COST", 16)
    monkeypatch.setattr(passwords, "PARALLEL", 1)
    return fake


@pytest.fixture
def console(fake: FakeProvider) -> Iterator[Console]:
    """Return a console with the provider."""
    clusters = (ClusterSettings("local", "127.0.0.1:1"),)
    settings = ConsoleSettings(clusters, ":memory:", first_password="a password!", oidc=SETTINGS)
    opened = open_console(settings, fake.clock)
    yield opened
    opened.close()


def request_of(path: str, query: str, cookies: dict[str, str]) -> Request:
    """Return a GET of a browser."""
    return Request("GET", path, {}, query, b"", {}, cookies, "10.0.0.1")


def begin(console: Console, target: str = "/") -> tuple[dict[str, str], dict[str, str]]:
    """Begin a login; return the parameters that the provider gets, and the cookies."""
    reply = begin_login(console, request_of("/oidc/login", f"next={target}", {}))
    assert reply.location.startswith(f"{ISSUER}/auth?")
    query = {name: texts[0] for name, texts in parse_qs(urlsplit(reply.location).query).items()}
    return query, {cookie.name: cookie.value for cookie in reply.cookies}


def log_in(console: Console, fake: FakeProvider, **claims: Any) -> Reply:
    """Log in with these claims beside the usual ones; None removes one."""
    query, cookies = begin(console, "/c/local/topics")
    now_s = fake.clock.time_ms() // 1000
    usual = {
        "iss": ISSUER, "aud": "console", "sub": "1", "iat": now_s, "exp": now_s + 60,
        "nonce": query["nonce"], "preferred_username": "ann", "groups": ["admins"],
    }  # fmt: skip
    fake.claims = {name: item for name, item in (usual | claims).items() if item is not None}
    address = f"code=c&state={query['state']}"
    return finish_login(console, request_of("/oidc/callback", address, cookies))


def test_a_login_has_pkce_and_leads_to_the_page(console: Console, fake: FakeProvider) -> None:
    """The verifier that the token endpoint gets is not in the address; only its hash is."""
    query, _ = begin(console)
    assert query["code_challenge_method"] == "S256"
    assert query["redirect_uri"] == "https://console.example/oidc/callback"
    reply = log_in(console, fake)
    assert (reply.status, reply.location) == (303, "/c/local/topics")
    session = next(cookie for cookie in reply.cookies if cookie.name == SESSION_COOKIE)
    found = console.sessions.find(session.value)
    assert found is not None
    assert (found.user.name, found.user.role) == ("ann", Role.ADMIN)
    (form,) = fake.forms
    assert form["code_verifier"][0] != query["code_challenge"]
    assert "client_secret" not in form


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"nonce": "other"}, "for another login"),
        ({"nonce": None}, "for another login"),
        ({"iss": "https://evil.example"}, "the id token is refused"),
        ({"aud": "another client"}, "the id token is refused"),
        ({"azp": "another client"}, "for the client"),
        ({"exp": 1}, "the id token is refused"),
        ({"sub": None}, "the id token is refused"),
        ({"groups": ["staff"]}, "no role of the console"),
        ({"groups": {"admins": True}}, "no role of the console"),
        ({"preferred_username": None}, "has no claim"),
        ({"preferred_username": "admin"}, "another user"),
        ({"preferred_username": "<b>"}, "is not allowed"),
    ],
)
def test_a_token_that_is_not_for_this_login_or_user_is_refused(
    console: Console, fake: FakeProvider, claims: dict[str, Any], reason: str
) -> None:
    """The form says why, the audit log has it, and there is no session and no user."""
    reply = log_in(console, fake, **claims)
    assert reply.status == 403
    assert reason in str(reply.body)
    assert SESSION_COOKIE not in {cookie.name for cookie in reply.cookies}
    assert [user.name for user in console.users.all()] == ["admin"]
    assert console.audit.entries(text="login")[0].result != "ok"


def test_a_token_with_another_key_is_refused(console: Console, fake: FakeProvider) -> None:
    """The keys of the provider decide, not the name of the key."""
    fake.key = OTHER_KEY
    assert "the id token is refused" in str(log_in(console, fake).body)


def test_a_response_counts_once_and_for_the_browser_that_began(
    console: Console, fake: FakeProvider
) -> None:
    """A forged or repeated address, and one that took ten minutes, are refused."""
    query, cookies = begin(console)
    address = f"code=c&state={query['state']}"
    for wrong_address, wrong_cookies in (
        (address, {}),
        (address, cookies),
        ("code=c&state=other", cookies),
        ("", {}),
    ):
        reply = finish_login(console, request_of("/oidc/callback", wrong_address, wrong_cookies))
        assert reply.status == 403
        assert "expired, or began elsewhere" in str(reply.body)
    query, cookies = begin(console)
    fake.clock.advance(11 * 60)
    late = request_of("/oidc/callback", f"code=c&state={query['state']}", cookies)
    assert finish_login(console, late).status == 403
    assert fake.forms == []


def test_the_role_follows_the_groups_and_sessions_with_another_role_end(
    console: Console, fake: FakeProvider
) -> None:
    """A user who left a group loses the role at the next login; the name may change, too."""
    first = log_in(console, fake)
    token = next(cookie.value for cookie in first.cookies if cookie.name == SESSION_COOKIE)
    console.identity_provider.settings = OidcSettings(  # type: ignore[union-attr]
        ISSUER, "console", "https://console.example", default_role=Role.VIEWER
    )
    log_in(console, fake, groups=["staff"], preferred_username="anna")
    user = console.users.find("ann")
    assert user is not None
    assert user.role is Role.VIEWER
    assert console.users.find("anna") is None
    assert console.sessions.find(token) is None


def test_errors_of_the_provider_are_shown(console: Console, fake: FakeProvider) -> None:
    """A refusal by the user, another issuer, and metadata that is not the configured one."""
    for extra, reason in (
        ("error=access_denied&error_description=not+today", "not today"),
        ("code=c&iss=https%3A%2F%2Fevil.example", "another identity provider"),
    ):
        query, cookies = begin(console)
        address = f"state={query['state']}&{extra}"
        reply = finish_login(console, request_of("/oidc/callback", address, cookies))
        assert reason in str(reply.body)
    fake.metadata = {"issuer": "https://evil.example"}
    assert console.identity_provider is not None
    fresh = module.IdentityProvider(SETTINGS, fake.clock)
    console.identity_provider = fresh
    reply = begin_login(console, request_of("/oidc/login", "", {}))
    assert reply.status == 503
    assert "evil.example" in str(reply.body)
    fake.metadata = {"token_endpoint": "http://login.example/token"}
    reply = begin_login(console, request_of("/oidc/login", "", {}))
    assert "use https" in str(reply.body)


def test_only_local_pages_are_led_to(console: Console, fake: FakeProvider) -> None:
    """The address of another site in `next` leads to the start page."""
    begin_login(console, request_of("/oidc/login", "next=https://evil.example/", {}))
    begin_login(console, request_of("/oidc/login", "next=//evil.example", {}))
    rows = console.database.rows("SELECT next FROM oidc_logins")
    assert {row["next"] for row in rows} == {"/"}


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"issuer": "http://login.example"}, "use https"),
        ({"issuer": ""}, "oidc.issuer is missing"),
        ({"url": "ftp://x"}, "use https"),
        ({"roles": {"boss": ["x"]}}, "unknown role 'boss'"),
        ({"roles": {"admin": "x"}}, "must be an array of texts"),
        ({"scopes": ["email"]}, "with openid"),
        ({"default_role": "boss"}, "unknown role"),
        ({"client_secret": "x"}, "oidc.client_secret is unknown"),
        ({"client_id": 5}, "must be a text"),
    ],
)
def test_wrong_settings_are_named(table: dict[str, Any], reason: str) -> None:
    """The secret is in a file of its own, never in this one."""
    usual = {"issuer": ISSUER, "client_id": "console", "url": "http://127.0.0.1:8080"}
    assert parse_oidc(usual, "").redirect_uri == "http://127.0.0.1:8080/oidc/callback"
    with pytest.raises(ConfigError, match=reason):
        parse_oidc(usual | table, "")


def test_the_highest_role_of_all_groups_counts() -> None:
    """A group in two roles has the higher one; without a group the default."""
    usual = {"issuer": ISSUER, "client_id": "console", "url": "http://localhost:8080"}
    roles = {"viewer": ["a", "b"], "editor": ["b"], "admin": ["c"]}
    settings = parse_oidc(usual | {"roles": roles, "default_role": "viewer"}, "")
    assert settings.role_of({"groups": ["a", "b"]}) is Role.EDITOR
    assert settings.role_of({"groups": "c"}) is Role.ADMIN
    assert settings.role_of({}) is Role.VIEWER
