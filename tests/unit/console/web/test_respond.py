"""The rules of requests: login, roles, CSRF, read-only mode, audit log, and errors."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from ottla.base.errors import ConfigError
from ottla.console.accounts import passwords
from ottla.console.accounts.roles import Role
from ottla.console.page import Action, Done, Download, Page, Source, View
from ottla.console.state import Console, ConsoleSettings, open_console
from ottla.console.web.login import login, prefer, show_login
from ottla.console.web.requests import SESSION_COOKIE, Reply, Request, is_local_path
from ottla.console.web.respond import Refused, respond, respond_with_data
from ottla.operations.changes import Change
from ottla.operations.survey.connections import ClusterSettings, ClusterUnavailable
from tests.unit.console.clocks import SetClock

PASSWORD = "a long password"
SETTINGS = ConsoleSettings(
    (ClusterSettings("local", "127.0.0.1:1"),), ":memory:", first_password=PASSWORD
)


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "COST", 16)
    monkeypatch.setattr(passwords, "PARALLEL", 1)


@pytest.fixture
def console() -> Iterator[Console]:
    opened = open_console(SETTINGS, SetClock())
    opened.users.create("ann", PASSWORD, Role.VIEWER, must_change=False)
    yield opened
    opened.close()


def show(view: View) -> Mapping[str, Any]:
    if view.query.text("fail"):
        raise ClusterUnavailable("cluster 'local' does not respond")
    return {"status": 200, "reason": f"shown to {view.actor.user}"}


def change(view: View) -> Done:
    if view.form.text("value") == "bad":
        raise ConfigError("value 'bad' is not allowed")
    after = {"value": view.form.text("value")}
    return Done("It is done.", change=Change("local", "thing.change", "thing", {}, after))


PAGE = Page(
    "/things",
    "error.html",
    show,
    actions={
        "change": Action(change, "thing.change", "name", Role.ADMIN),
        "preview": Action(lambda view: Done(data={"reason": "previewed"}), is_preview=True),
    },
)


def request_of(method: str = "GET", *, token: str = "", query: str = "", **form: str) -> Request:
    return Request(
        method,
        "/c/local/things",
        {"cluster": "local"},
        query,
        urlencode(form).encode(),
        {},
        {SESSION_COOKIE: token} if token else {},
        "10.0.0.1",
    )


def post(console: Console, user: str, **form: str) -> Reply:
    token = console.sessions.open(user)
    session = console.sessions.find(token)
    assert session is not None
    return respond(console, PAGE, request_of("POST", token=token, csrf=session.csrf, **form))


def test_a_page_without_a_session_leads_to_the_login(console: Console) -> None:
    """The address of the page is kept for after the login."""
    reply = respond(console, PAGE, request_of(query="a=1"))
    assert reply.status == 303
    assert reply.location == "/login?next=%2Fc%2Flocal%2Fthings%3Fa%3D1"
    assert respond(console, PAGE, request_of(token="forged")).status == 303


def test_a_change_without_the_csrf_token_is_refused(console: Console) -> None:
    """A form of another site has the cookie, but neither the token nor the origin."""
    token = console.sessions.open("admin")
    session = console.sessions.find(token)
    assert session is not None
    form = {"action": "change", "value": "1"}
    assert respond(console, PAGE, request_of("POST", token=token, **form)).status == 403
    foreign = request_of("POST", token=token, csrf=session.csrf, **form)._replace(
        is_same_origin=False
    )
    assert respond(console, PAGE, foreign).status == 403
    assert console.audit.entries() == []


def test_a_change_is_written_to_the_audit_log(console: Console) -> None:
    """The log has user, address, action, target and values; the next page shows the sentence once."""
    reply = post(console, "admin", action="change", value="1")
    assert (reply.status, reply.location) == (303, "/c/local/things")
    entry = console.audit.entries()[0]
    assert entry[1:6] == ("admin", "10.0.0.1", "local", "thing.change", "thing")
    assert entry.details == {"value": "– → 1"}
    assert entry.result == "ok"


def test_a_failed_change_is_written_to_the_audit_log_and_shown(console: Console) -> None:
    """The page is shown again with the error, and the log has it too."""
    reply = post(console, "admin", action="change", value="bad", name="thing")
    assert reply.status == 400
    assert "Value &#39;bad&#39; is not allowed." in str(reply.body)
    entry = console.audit.entries()[0]
    assert (entry.action, entry.target) == ("thing.change", "thing")
    assert entry.result == "value 'bad' is not allowed"


def test_a_role_limits_changes(console: Console) -> None:
    """A viewer may not change anything."""
    assert post(console, "ann", action="change", value="1").status == 403
    assert post(console, "ann", action="nonsense").status == 400


@pytest.mark.parametrize("is_console", [True, False])
def test_read_only_mode_refuses_changes_and_allows_previews(is_console: bool) -> None:
    """Read-only mode binds admins, for the console or for one cluster."""
    cluster = ClusterSettings("local", "127.0.0.1:1", is_read_only=not is_console)
    settings = dataclasses.replace(SETTINGS, clusters=(cluster,), is_read_only=is_console)
    console = open_console(settings, SetClock())
    assert post(console, "admin", action="change", value="1").status == 403
    assert post(console, "admin", action="preview").status == 200
    console.close()


def test_an_unavailable_cluster_has_a_page_that_tries_again(console: Console) -> None:
    """The browser loads the page again, also without scripts."""
    reply = respond(console, PAGE, request_of(token=console.sessions.open("ann"), query="fail=1"))
    assert reply.status == 503
    assert reply.headers["refresh"] == "3"
    assert "does not respond" in str(reply.body)


def test_an_unknown_cluster_is_not_found(console: Console) -> None:
    """A page of a cluster that the console does not have is 404."""
    request = request_of(token=console.sessions.open("ann"))._replace(params={"cluster": "x"})
    assert respond(console, PAGE, request).status == 404


def test_a_one_time_password_must_be_changed_first(console: Console) -> None:
    """Every page leads to the account until the user has a password of their own."""
    console.users.create("new", PASSWORD, Role.ADMIN)
    reply = respond(console, PAGE, request_of(token=console.sessions.open("new")))
    assert reply.location == "/account"
    assert post(console, "new", action="change", value="1").location == "/account"


def login_request(password: str, **changes: Any) -> Request:
    body = urlencode({"user": "ann", "password": password}).encode()
    request = Request("POST", "/login", {}, "", body, {}, {}, "10.0.0.1")
    return request._replace(**changes)


def test_login_opens_a_session_and_returns_to_the_page(console: Console) -> None:
    """The cookie is a session; a foreign address is not followed."""
    reply = login(console, login_request(PASSWORD, query="next=%2Fc%2Flocal%2Ftopics"))
    assert reply.location == "/c/local/topics"
    assert console.sessions.find(reply.cookies[0].value) is not None
    reply = login(console, login_request(PASSWORD, query="next=%2F%2Fevil.example"))
    assert reply.location == "/"
    token = console.sessions.open("ann")
    assert show_login(console, request_of(token=token)).status == 303


def test_failed_logins_are_logged_and_slow_down(console: Console) -> None:
    """The sixth attempt is refused even with the right password, until the wait is over."""
    for _ in range(5):
        assert login(console, login_request("wrong password")).status == 401
    assert login(console, login_request(PASSWORD)).status == 429
    assert [entry.result for entry in console.audit.entries()] == ["failed"] * 5
    clock = console.clock
    assert isinstance(clock, SetClock)
    clock.advance(6)
    assert login(console, login_request(PASSWORD)).status == 303


def test_failed_logins_of_others_do_not_lock_a_user_out(console: Console) -> None:
    """An attacker who knows the name waits; the user logs in from another address."""
    for _ in range(20):
        login(console, login_request("wrong password", client="10.0.0.66"))
    assert login(console, login_request(PASSWORD, client="10.0.0.66")).status == 429
    assert login(console, login_request(PASSWORD)).status == 303


def test_download_ends_when_the_rights_of_its_user_change(console: Console) -> None:
    """The file breaks off, so that no one takes it for complete."""
    chunks = iter([b"first", b"second", b"third"])
    source = Source("/file", lambda view: Download("file", "text/plain", chunks), is_global=True)
    token = console.sessions.open("ann")
    reply = respond_with_data(console, source, request_of(token=token))
    body = reply.body
    assert not isinstance(body, str | bytes)
    read = iter(body)
    assert next(read) == b"first"
    console.users.set_role("ann", Role.EDITOR)
    clock = console.clock
    assert isinstance(clock, SetClock)
    clock.advance(2)
    with pytest.raises(Refused):
        next(read)


def test_a_login_form_of_another_site_is_refused(console: Console) -> None:
    """Another site cannot log a user in as another user."""
    assert login(console, login_request(PASSWORD, is_same_origin=False)).status == 403


def test_preferences_are_cookies_of_known_values(console: Console) -> None:
    """Unknown values set nothing, and only addresses of the console are followed."""
    body = urlencode({"language": "zh", "theme": "pink", "next": "/\\evil.example"}).encode()
    reply = prefer(console, Request("POST", "/preferences", {}, "", body, {}, {}, ""))
    assert [cookie.name for cookie in reply.cookies] == ["ottla_language"]
    assert reply.location == "/"


@pytest.mark.parametrize("path", ["//x", "/\\x", "http://x", "", "/a\nb"])
def test_foreign_addresses_are_no_local_paths(path: str) -> None:
    """A redirect stays on the console."""
    assert not is_local_path(path)


def test_the_chosen_cluster_stays_chosen_on_pages_of_no_cluster() -> None:
    """The links of the navigation, and the address after a form, keep it; unknown ones are none."""
    clusters = (ClusterSettings("first", "127.0.0.1:1"), ClusterSettings("live", "127.0.0.1:1"))
    opened = open_console(dataclasses.replace(SETTINGS, clusters=clusters), SetClock())
    opened.users.create("ann", PASSWORD, Role.ADMIN, must_change=False)
    page = Page(
        "/alerts",
        "error.html",
        lambda view: {"status": 200, "reason": f"of {view.cluster_name or 'none'}"},
        actions={"change": Action(lambda view: Done("It is done.", "/alerts"), "a")},
        is_global=True,
    )
    token = opened.sessions.open("ann")
    session = opened.sessions.find(token)
    assert session is not None
    request = request_of(token=token)._replace(path="/alerts", params={})
    reply = respond(opened, page, request._replace(query="of=live"))
    text = str(reply.body)
    assert "of live" in text
    assert 'href="/c/live/topics"' in text
    assert all(f'href="/{path}?of=live"' in text for path in ("alerts", "audit", "users"))
    assert 'data-cluster="live"' in text
    form = urlencode({"csrf": session.csrf, "action": "change"}).encode()
    posted = request._replace(method="POST", query="of=live", body=form)
    assert respond(opened, page, posted).location == "/alerts?of=live"
    assert respond(opened, page, posted._replace(query="")).location == "/alerts"
    for query in ("", "of=other"):
        assert "of none" in str(respond(opened, page, request._replace(query=query)).body)
    opened.close()


def test_a_login_link_opens_a_session_once(console: Console) -> None:
    """The second use shows the form with the reason; a browser's prefetch does not use the link."""
    token = console.login_link.create()
    request = request_of(query=f"token={token}")
    prefetch = request._replace(headers={"sec-purpose": "prefetch;prerender"})
    assert show_login(console, prefetch).status == 200
    reply = show_login(console, request)
    (cookie,) = reply.cookies
    session = console.sessions.find(cookie.value)
    assert session is not None and session.user.name == "admin"
    assert reply.location == "/"
    again = show_login(console, request)
    assert (again.status, again.cookies) == (401, ())
    assert "has been used" in str(again.body)
