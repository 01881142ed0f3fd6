"""Login, logout, language and theme: the addresses that need no page of a cluster.

Not done: LDAP; the address of a user behind a proxy, so that failed logins through a proxy
make its other users wait, too: for the same name, and after many for all names.
"""

import math
from urllib.parse import parse_qs

from ottla.console.accounts.audit import Actor
from ottla.console.accounts.users import FIRST_USER
from ottla.console.fields import Fields
from ottla.console.state import Console
from ottla.console.texts.catalogue import LANGUAGES
from ottla.console.web.requests import (
    LANGUAGE_COOKIE,
    SESSION_COOKIE,
    THEME_COOKIE,
    THEMES,
    Cookie,
    Reply,
    Request,
    is_local_path,
    redirect,
)
from ottla.console.web.respond import find_session, language_of
from ottla.console.web.templates import render

_YEAR_S = 365 * 24 * 3600


def show_login(console: Console, request: Request) -> Reply:
    """Show the form, or the console to a user who is logged in or has a login link."""
    if find_session(console, request) is not None:
        return redirect(_next(request))
    token = parse_qs(request.query).get("token", [""])[0]
    if not token or request.headers.get("sec-purpose", "").startswith("prefetch"):
        return _form(console, request)
    user = console.users.find(FIRST_USER)
    if user is None or not console.login_link.use(token):
        sentence = language_of(request).say(
            "This link has been used: start the console again for another one."
        )
        return _form(console, request, sentence, 401)
    console.users.note_login(user.name)
    console.audit.write(Actor(user.name, request.client), "login", details={"with": "link"})
    return redirect("/", Cookie(SESSION_COOKIE, console.sessions.open(user.name)))


def login(console: Console, request: Request) -> Reply:
    """Check name and password; failures of a name at an address slow down."""
    form = Fields(request.body.decode("utf-8", "replace"))
    name, password = form.text("user"), form.get("password", "")
    say = language_of(request).say
    if not request.is_same_origin:
        return _form(console, request, say("Another site sent this form: log in here."), 403)
    now = console.clock.monotonic()
    wait = console.attempts.wait_s(request.client, name, now)
    if wait > 0:
        sentence = say("Too many failed logins: wait {seconds} s.", seconds=math.ceil(wait))
        return _form(console, request, sentence, 429)
    # Counted before the password is checked: parallel attempts must not outrun the limit.
    console.attempts.failed(request.client, name, now)
    user = console.users.login(name, password)
    if user is None:
        console.audit.write(Actor(name[:64], request.client), "login", result="failed")
        return _form(console, request, say("User name or password is wrong."), 401)
    console.attempts.succeeded(request.client, name)
    console.audit.write(Actor(user.name, request.client), "login")
    token = console.sessions.open(user.name)
    return redirect(_next(request), Cookie(SESSION_COOKIE, token))


def logout(console: Console, request: Request) -> Reply:
    """End the session; without the CSRF token nothing happens."""
    session = find_session(console, request)
    form = Fields(request.body.decode("utf-8", "replace"))
    if session is None or not session.has_csrf(form.text("csrf")):
        return redirect("/")
    console.sessions.close(session.key)
    return redirect("/login", Cookie(SESSION_COOKIE, "", 0))


def prefer(console: Console, request: Request) -> Reply:
    """Store the language or the theme in a cookie; neither is a secret."""
    form = Fields(request.body.decode("utf-8", "replace"))
    cookies = []
    if form.text("language") in LANGUAGES:
        cookies.append(Cookie(LANGUAGE_COOKIE, form.text("language"), _YEAR_S))
    if form.text("theme") in THEMES:
        cookies.append(Cookie(THEME_COOKIE, form.text("theme"), _YEAR_S))
    target = form.text("next", "/")
    return redirect(target if is_local_path(target) else "/", *cookies)


def login_form(console: Console, request: Request, error: str, status: int) -> Reply:
    """Return the form with an error of another login."""
    return _form(console, request, error, status)


def _next(request: Request) -> str:
    target = parse_qs(request.query).get("next", ["/"])[0]
    return target if is_local_path(target) else "/"


def _form(console: Console, request: Request, error: str = "", status: int = 200) -> Reply:
    """Return the form; after an error it has the name that was typed."""
    language = language_of(request)
    typed = Fields(request.body.decode("utf-8", "replace"))
    first = console.users.find(FIRST_USER)
    context = {
        "_": language.say,
        "language": language.code,
        "languages": LANGUAGES,
        "theme": request.theme,
        "here": request.here,
        "error": error,
        "user": typed.text("user"),
        "provider": console.settings.oidc.name if console.settings.oidc else "",
        "next": _next(request),
        "is_first": first is not None and first.must_change and console.one_time_password,
    }
    return Reply(status, render("login.html", context))
