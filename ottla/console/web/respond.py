"""The rules of every request: session, role, CSRF, read-only mode, audit log, and error pages."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.client.errors import NotReachable, TimedOut, Unsupported
from ottla.console.accounts.audit import Actor
from ottla.console.accounts.reading import Reader
from ottla.console.accounts.roles import Role
from ottla.console.accounts.sessions import Session
from ottla.console.accounts.users import AccountError
from ottla.console.catalogue import UnknownCluster
from ottla.console.fields import Fields
from ottla.console.formats import as_json
from ottla.console.model.messages.masking import MaskedTopic
from ottla.console.page import (
    CHOSEN,
    Action,
    Done,
    Download,
    Events,
    NotFound,
    Page,
    Source,
    View,
)
from ottla.console.state import Console
from ottla.console.texts.catalogue import Language, language, preferred
from ottla.console.web import layout
from ottla.console.web.requests import LANGUAGE_COOKIE, SESSION_COOKIE, Reply, Request, redirect
from ottla.console.web.templates import render
from ottla.operations.survey.connections import ClusterUnavailable, LoginRefused

_log = logging.getLogger(__name__)

ACCOUNT_PATH = "/account"
_RETRY_S = 3
# How often a stream checks the rights of its user.
_RIGHTS_S = 1.0
_RIGHTS_CHANGED = "Your rights have changed: load the page again."
# The fields of a query that name the subject of a page; the others are typed in its form.
_ENTITY_FIELDS = ("id",)
_NO_SUCH = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.RESOURCE_NOT_FOUND,
    }
)


# The fields of the forms of a topic that name another one: to copy or to produce to.
_TOPIC_FIELDS = ("topic", "target")
_FOR_SCRIPTS = ("/static/", "/api/")
_NOWHERE = Page("", "error.html", lambda view: {}, is_global=True)


NOT_AUTHORIZED = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


class Refused(Exception):
    """A request that the rules forbid; the page shows the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def respond(console: Console, page: Page, request: Request) -> Reply:
    """Respond to a request for a page; blocks until the cluster responds."""
    session = find_session(console, request)
    if session is None:
        return _login_first(request)
    if session.user.must_change and page.path != ACCOUNT_PATH:
        return redirect(ACCOUNT_PATH)
    view = view_of(console, session, request)
    try:
        return _page_reply(page, view, request)
    except Refused as error:
        return _error_page(view, page, error.status, view.say(str(error)))
    except (OttlaError, OSError) as error:
        return _failure(view, page, error)


def respond_not_found(console: Console, request: Request) -> Reply:
    """Respond to a request for an address without a page: with the frame for a user, else with
    text.
    """
    session = find_session(console, request)
    if session is None or request.path.startswith(_FOR_SCRIPTS):
        text = "There is no such page. The start page is /.\n"
        return Reply(404, text, "text/plain")
    view = view_of(console, session, request)
    return _error_page(view, _NOWHERE, 404, view.say("There is no such page."))


def respond_with_data(console: Console, source: Source, request: Request) -> Reply:
    """Respond to a script's request with JSON, or with a download; errors are JSON, too."""
    session = find_session(console, request)
    if session is None:
        return _json_reply({"error": "log in again"}, 401)
    view = view_of(console, session, request)
    try:
        _check_may_see(source.role, view)
        _connect(view, source.is_global)
        reader = view.reader
        value = source.read(view)
    except Refused as error:
        return _json_reply({"error": view.say(str(error))}, error.status)
    except (OttlaError, OSError) as error:
        return _json_reply({"error": str(error)}, status_of(error))
    if isinstance(value, Events):
        events = _event_stream(view, value, _allowed(view, reader))
        return Reply(200, events, "text/event-stream", stop=value.stop)
    if isinstance(value, Download):
        disposition = f"attachment; filename*=UTF-8''{quote(value.name, safe='')}"
        return Reply(
            200,
            _download(value, _allowed(view, reader)),
            value.media_type,
            headers={"content-disposition": disposition},
        )
    return _json_reply(value, 200)


def find_session(console: Console, request: Request) -> Session | None:
    """Return the session of the request's cookie, or None."""
    token = request.cookies.get(SESSION_COOKIE, "")
    return console.sessions.find(token) if token else None


def language_of(request: Request) -> Language:
    """Return the language of the cookie, else of the browser."""
    code = request.cookies.get(LANGUAGE_COOKIE, "")
    return language(code or preferred(request.headers.get("accept-language", "")))


def view_of(console: Console, session: Session, request: Request) -> View:
    """Return what a page may read of a request."""
    return View(
        console=console,
        session=session,
        actor=Actor(session.user.name, request.client),
        language=language_of(request),
        path=request.params,
        query=Fields(request.query),
        form=Fields(request.body.decode("utf-8", "replace") if request.method == "POST" else ""),
        here=request.here,
        theme=request.theme,
    )


def check_csrf(session: Session, request: Request, token: str) -> None:
    """Refuse a form that another site may have sent."""
    if not request.is_same_origin or not session.has_csrf(token):
        raise Refused(403, "This form is out of date: load the page again and repeat the change.")


def status_of(error: Exception) -> int:
    """Return the HTTP status for an error of the cluster or of the input."""
    if isinstance(error, ClusterUnavailable | NotReachable | TimedOut | OSError):
        return 503
    if isinstance(error, UnknownCluster | NotFound):
        return 404
    if isinstance(error, ApiError):
        is_denied = error.code in NOT_AUTHORIZED
        return 403 if is_denied else 404 if error.code in _NO_SUCH else 409
    if isinstance(error, MaskedTopic):
        return 403
    if isinstance(error, ConfigError | AccountError):
        return 400
    # The rest are outdated forms and plans: another user changed the same thing.
    return 501 if isinstance(error, Unsupported) else 409


def _page_reply(page: Page, view: View, request: Request) -> Reply:
    if request.method != "POST":
        _check_may_see(page.role, view)
        _connect(view, page.is_global)
        return _page_of_query(page, view)
    check_csrf(view.session, request, view.form.text("csrf"))
    _check_may_see(page.role, view)
    _connect(view, page.is_global)
    action = page.actions.get(view.form.text("action"))
    if action is None:
        raise Refused(400, "This page has no such action.")
    _check_may_act(action, view)
    try:
        done = _run(action, view)
    except (OttlaError, ValueError) as error:
        if status_of(error) == 503:
            raise
        data = page.show(view)
        return _shown(page, view, data, status=status_of(error), error=_sentence(view, error))
    if done.data is not None:
        return _shown(page, view, {**page.show(view), **done.data}, notice=done.sentence)
    if done.sentence:
        view.console.notices.leave(view.session.key, done.sentence)
    is_here = done.location == page.path and page.is_global
    return redirect(view.global_url(done.location) if is_here else done.location or request.here)


def _page_of_query(page: Page, view: View) -> Reply:
    """Return the page; after a wrong query the page without it, with the reason and its form."""
    try:
        return _shown(page, view, page.show(view))
    except OttlaError as error:
        names = _ENTITY_FIELDS if view.connection else (*_ENTITY_FIELDS, CHOSEN)
        entity = {name: view.query[name] for name in names if name in view.query}
        status = status_of(error)
        if status == 503 or len(entity) == len(view.query):
            raise
        without_query = replace(view, query=Fields(urlencode(entity)))
        try:
            data = page.show(without_query)
        except OttlaError:
            raise error from None
        return _shown(page, view, data, status=status, error=_sentence(view, error))


def _run(action: Action, view: View) -> Done:
    """Run an action and write the audit log, also if it fails."""
    try:
        done = action.run(view)
    except (OttlaError, ValueError, OSError) as error:
        if not action.is_preview:
            target = view.form.text(action.target) or view.path.get(action.target, "")
            view.console.audit.write(
                view.actor,
                action.name,
                cluster=view.connection.name if view.connection else "",
                target=target,
                result=str(error) or type(error).__name__,
            )
        raise
    if done.change is not None:
        change = done.change
        names = sorted({*change.before, *change.after})
        details = {
            name: f"{change.before.get(name, '–')} → {change.after.get(name, '–')}"
            for name in names
        }
        if change.notes:
            details["notes"] = "; ".join(change.notes)
        view.console.audit.write(
            view.actor,
            change.action,
            cluster=change.cluster,
            target=change.resource,
            details=details,
        )
    return done


def _check_may_see(role: Role, view: View) -> None:
    if view.role_for(view.path.get("topic")) is None:
        raise Refused(403, "You have no right in this cluster, or for this topic: ask an admin.")
    if view.role < role:
        raise Refused(403, "Your role does not allow you to see this page.")


def _check_may_act(action: Action, view: View) -> None:
    topics = {view.form.text(name) for name in _TOPIC_FIELDS} - {""}
    # Other pages have lists of topics: a right for all topics is needed there.
    roles = [view.role_for(name) for name in topics] if "topic" in view.path else []
    if any(role is None or role < action.role for role in (view.role, *roles)):
        raise Refused(403, "Your role does not allow this change.")
    if view.is_read_only and not action.is_preview and view.connection is not None:
        raise Refused(403, "This console is in read-only mode: nothing can be changed.")


def _connect(view: View, is_global: bool) -> None:
    if not is_global:
        view.connection = view.console.clusters.get(view.path["cluster"])


def _login_first(request: Request) -> Reply:
    if request.method != "GET":
        return redirect("/login")
    is_root = request.here == "/"
    return redirect("/login" if is_root else "/login?" + urlencode({"next": request.here}))


def _shown(
    page: Page,
    view: View,
    data: Mapping[str, Any],
    *,
    status: int = 200,
    error: str = "",
    notice: str = "",
) -> Reply:
    notice = notice or view.console.notices.take(view.session.key)
    # The response to a form is not at the address: a refresh would remove it.
    refresh_s = 0 if view.form else page.refresh_s
    context = layout.context(view, page.section, refresh_s)
    context |= {"error": error, "notice": notice, **data}
    return Reply(status, render(page.template, context))


def _failure(view: View, page: Page, error: Exception) -> Reply:
    status = status_of(error)
    if status == 503:
        data = {"is_login_refused": isinstance(error, LoginRefused)}
        return _error_page(view, page, status, str(error), "unavailable.html", data)
    return _error_page(view, page, status, _sentence(view, error))


def _sentence(view: View, error: Exception) -> str:
    """Return an error as a sentence, with a remedy if the cluster denies the console's user."""
    if not isinstance(error, ApiError) or error.code not in NOT_AUTHORIZED:
        return layout.sentence(error)
    remedy = view.say(
        "The console has the rights of its user in this cluster: give that user an ACL, or name"
        " another user in the file of --command-config."
    )
    return f"{layout.sentence(error)} {remedy}"


def _error_page(
    view: View,
    page: Page,
    status: int,
    reason: str,
    template: str = "error.html",
    data: Mapping[str, Any] | None = None,
) -> Reply:
    if view.connection is None and view.path.get("cluster") in view.console.clusters.names():
        view.connection = view.console.clusters.get(view.path["cluster"])
    context = layout.context(view, page.section, 0)
    context |= {"error": "", "notice": "", "status": status, "reason": reason, **(data or {})}
    headers = {"refresh": str(_RETRY_S), "retry-after": str(_RETRY_S)} if status == 503 else {}
    return Reply(status, render(template, context), headers=headers)


def _allowed(view: View, reader: Reader) -> Callable[[], bool]:
    """Return the function that is True while the user has the rights with which a stream began.

    It reads the rights once a second.
    """
    clock = view.console.clock
    checked_at = clock.monotonic()

    def is_allowed() -> bool:
        nonlocal checked_at
        now = clock.monotonic()
        if now - checked_at < _RIGHTS_S:
            return True
        checked_at = now
        return view.may_still_read(reader)

    return is_allowed


def _download(download: Download, is_allowed: Callable[[], bool]) -> Iterator[bytes]:
    """Yield the chunks of a file; the connection breaks if the rights of the user have changed."""
    for chunk in download.chunks:
        if not is_allowed():
            raise Refused(403, _RIGHTS_CHANGED)
        yield chunk


def _event_stream(view: View, stream: Events, is_allowed: Callable[[], bool]) -> Iterator[bytes]:
    """Yield events in the format of Server-Sent Events; a template's text is the field `html`."""
    context = layout.context(view, "", 0) | {"error": "", "notice": ""}
    for name, value in stream.events:
        if not is_allowed():
            stream.stop()
            reason = {"reason": view.say(_RIGHTS_CHANGED)}
            yield f"event: failed\ndata: {as_json(reason)}\n\n".encode()
            return
        data = value
        if isinstance(value, Mapping) and "template" in value:
            html = render(value["template"], context | dict(value))
            data = {"html": html, "count": len(value["rows"])}
        yield f"event: {name}\ndata: {as_json(data)}\n\n".encode()


def _json_reply(value: Any, status: int) -> Reply:
    return Reply(status, as_json(value), "application/json", headers={"cache-control": "no-store"})
