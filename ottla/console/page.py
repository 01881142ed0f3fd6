"""Pages of the console: their inputs, their data, and the actions of their forms.

A page is a function from a `View` to the data of a template, and a table of actions. Neither knows
HTTP or HTML: `web/` decides who may call them, writes the audit log, and renders the result.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from ottla.base.errors import ConfigError
from ottla.console.accounts.audit import Actor
from ottla.console.accounts.reading import Reader, is_current, reader_of
from ottla.console.accounts.rights import Right, role_in
from ottla.console.accounts.roles import Role
from ottla.console.accounts.sessions import Session
from ottla.console.fields import Fields
from ottla.console.model.messages.masking import MaskingRule
from ottla.console.state import Console
from ottla.console.texts.catalogue import Language
from ottla.operations.changes import Change
from ottla.operations.survey.connections import ClusterConnection

# The field of the query that names the chosen cluster on pages of no cluster.
CHOSEN = "of"


class NotFound(ConfigError):
    """The page names something that does not exist."""


@dataclass(slots=True)
class View:
    """One request of a user who is logged in: what a page or an action may read.

    `path` has the parameters of the address, and `here` is the address itself with its query.
    `connection` is None for pages of no cluster.
    """

    console: Console
    session: Session
    actor: Actor
    language: Language
    path: Mapping[str, str]
    query: Fields
    form: Fields
    here: str = "/"
    theme: str = "auto"
    connection: ClusterConnection | None = None
    _rights: tuple[Right, ...] | None = None

    @property
    def cluster(self) -> ClusterConnection:
        """The cluster of the address."""
        assert self.connection is not None, "a page of a cluster"
        return self.connection

    @property
    def cluster_name(self) -> str:
        """The cluster that the user has chosen; empty for none.

        Pages of no cluster have it in their query, so that it stays chosen.
        """
        if self.connection is not None:
            return self.connection.name
        name = self.query.text(CHOSEN)
        return name if name in self.console.clusters.names() else ""

    @property
    def role(self) -> Role:
        """The role of the user on this page: in its cluster, for its topic."""
        return self.role_for(self.path.get("topic")) or Role.VIEWER

    def role_for(self, topic: str | None) -> Role | None:
        """Return the role of the user in the cluster of the address, for a topic of it or for the
        rest of it; None if the user may see nothing of it.
        """
        return self._role_in(self.path.get("cluster", ""), topic)

    def may_see(self, cluster: str) -> bool:
        """Return True if the user may see something of a cluster."""
        return self._role_in(cluster, None) is not None

    def _role_in(self, cluster: str, topic: str | None) -> Role | None:
        user = self.session.user
        if self._rights is None:
            self._rights = self.console.rights.of(user.name)
        return role_in(user.role, self._rights, cluster, topic)

    @property
    def is_read_only(self) -> bool:
        """True if the console, or the cluster of the page, may only be read."""
        if self.console.settings.is_read_only:
            return True
        return self.connection is not None and self.connection.settings.is_read_only

    def may(self, role: Role) -> bool:
        """Return True if the user may make changes that need `role`."""
        return self.role >= role and not self.is_read_only

    @property
    def reader(self) -> Reader:
        """The rights of the user to read records at this moment."""
        console = self.console
        return reader_of(self.session.user, self.session.key, console.masking, console.rights)

    @property
    def masking(self) -> tuple[MaskingRule, ...]:
        """The masking rules that apply to the user."""
        return self.reader.rules

    def may_still_read(self, reader: Reader) -> bool:
        """Return True while the session lives, and its user has the rights of `reader`."""
        console = self.console
        return is_current(reader, console.sessions, console.masking, console.rights)

    def say(self, text: str, **values: object) -> str:
        """Translate a sentence and insert values."""
        return self.language.say(text, **values)

    def url(self, *parts: str, **query: object) -> str:
        """Return the address of a page of this cluster."""
        return url_of(self.cluster.name, *parts, **query)

    def global_url(self, path: str, **query: object) -> str:
        """Return the address of a page of no cluster, with the chosen cluster."""
        parameters = {name: value for name, value in query.items() if value not in (None, "")}
        if self.cluster_name:
            parameters[CHOSEN] = self.cluster_name
        return f"{path}?{urlencode(parameters)}" if parameters else path

    def here_with(self, **changes: object) -> str:
        """Return this address with other query values; an empty one is left out."""
        parameters = {name: self.query[name] for name in self.query}
        parameters |= {name: str(value) for name, value in changes.items()}
        query = urlencode({name: value for name, value in parameters.items() if value})
        path = self.here.partition("?")[0]
        return f"{path}?{query}" if query else path


class Done(NamedTuple):
    """The result of an action.

    The browser is sent to `location` (empty: the same page) and reads `sentence` there. With `data`
    the page itself is shown again with these values, as after a dry run.
    """

    sentence: str = ""
    location: str = ""
    change: Change | None = None
    data: Mapping[str, Any] | None = None


class Download(NamedTuple):
    """A file instead of a page; the chunks are read in a thread."""

    name: str
    media_type: str
    chunks: Iterable[bytes]


class Events(NamedTuple):
    """A stream of events for a script: each has a name and data, which is sent as JSON.

    Data with a `template` is rendered with the rest as its context. `stop` is called when the
    browser has closed the stream; it may be called from another thread.
    """

    events: Iterator[tuple[str, Any]]
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Action:
    """A button: `run` changes something, or shows what would change if `is_preview`.

    `name` is the action in the audit log if it fails; a success is written with its `Change`.
    `target` is the field of the form or of the address that names the entity.
    """

    run: Callable[[View], Done]
    name: str = ""
    target: str = ""
    role: Role = Role.EDITOR
    is_preview: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """An address, the function that returns its data, and its actions by the value of `action`.

    `path` is below `/c/CLUSTER` unless `is_global`. A page with `refresh_s` is read again by the
    browser. `role` is needed to see it.
    """

    path: str
    template: str
    show: Callable[[View], Mapping[str, Any]]
    section: str = ""
    actions: Mapping[str, Action] = field(default_factory=dict)
    role: Role = Role.VIEWER
    is_global: bool = False
    refresh_s: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """An address that returns data for scripts: JSON, a `Download` or `Events`."""

    path: str
    read: Callable[[View], Any]
    role: Role = Role.VIEWER
    is_global: bool = False


def url_of(cluster: str, *parts: str, **query: object) -> str:
    """Return the address of a page of a cluster; empty query values are left out."""
    path = "/".join(quote(part, safe="") for part in ("c", cluster, *parts))
    parameters = {name: value for name, value in query.items() if value not in (None, "", False)}
    return f"/{path}?{urlencode(parameters)}" if parameters else f"/{path}"
