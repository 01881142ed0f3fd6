"""The frame of every page: navigation, clusters, user, language."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ottla.base.errors import ApiError
from ottla.console.accounts.roles import Role
from ottla.console.fields import Fields
from ottla.console.model.zookeeper import has_tree
from ottla.console.page import View, url_of
from ottla.console.texts.catalogue import LANGUAGES

_LENGTH_MAX = 600


class Section(NamedTuple):
    """An entry of the navigation: its address below the cluster, and the key after `g`.

    `is_shown` hides it from users and clusters for which it has no page; pages of no cluster have
    the entries of the first cluster.
    """

    name: str
    path: str
    label: str
    key: str
    is_shown: Callable[[View, str], bool] = lambda view, cluster: True
    is_global: bool = False


def _is_admin(view: View, cluster: str) -> bool:
    return view.role is Role.ADMIN


def _has_zookeeper(view: View, cluster: str) -> bool:
    return view.role is Role.ADMIN and has_tree(view.console.clusters.get(cluster))


def _has_registry(view: View, cluster: str) -> bool:
    return bool(cluster) and view.console.clusters.get(cluster).schemas.has_registry


# In the order of the page.
SECTIONS = (
    Section("overview", "overview", "Overview", "o"),
    Section("brokers", "brokers", "Brokers", "b"),
    Section("topics", "topics", "Topics", "t"),
    Section("schemas", "schemas", "Schemas", "m", _has_registry),
    Section("groups", "groups", "Groups", "c"),
    Section("streams", "streams", "Streams", "s"),
    Section("transactions", "transactions", "Transactions", "x"),
    Section("acls", "acls", "ACL & users", "a"),
    Section("quotas", "quotas", "Quotas", "q"),
    Section("zookeeper", "zookeeper", "ZooKeeper", "z", _has_zookeeper),
    Section("sql", "sql", "SQL", "y"),
    Section("alerts", "/alerts", "Alerts", "l", is_global=True),
    Section("audit", "/audit", "Audit", "u", _is_admin, True),
    Section("users", "/users", "Users", "p", _is_admin, True),
)


def context(view: View, section: str, refresh_s: int) -> dict[str, Any]:
    """Return the names that `layout.html` and the macros read."""
    names = [name for name in view.console.clusters.names() if view.may_see(name)]
    cluster = view.cluster_name
    return {
        "view": view,
        "_": view.say,
        "url": lambda *parts, **query: url_of(cluster, *parts, **query),
        "global_url": view.global_url,
        "sampled_by_other": _sampled_by_other(view),
        "csrf": view.session.csrf,
        "section": section,
        "sections": _links(view, cluster or (names[0] if names else "")),
        "clusters": names,
        "cluster": cluster,
        "languages": LANGUAGES,
        "refresh_s": refresh_s,
        "here": view.here,
        "here_with": view.here_with,
        "theme": view.theme,
        "editor": Role.EDITOR,
        "admin": Role.ADMIN,
        "values": view.form,
        "typed": partial(_typed, view.form),
    }


def _sampled_by_other(view: View) -> list[str]:
    """Return the clusters that another console samples; on the page of a cluster only that one."""
    connection = view.connection
    names = view.console.clusters.names() if connection is None else [connection.name]
    return [name for name in names if view.console.locks.is_with_other(name)]


def _typed(form: Fields, action: str, name: str) -> str:
    """Return a field of the form that was sent; empty if that form had another action."""
    return form.get(name, "") if form.text("action") == action else ""


def sentence(error: Exception) -> str:
    """Return an error's message as a sentence: a capital letter and a full stop.

    The first word of a broker's message may be a typed value, and is unchanged; so is a name with
    other characters than letters, as orders-0. A long value is cut in its middle.
    """
    text = str(error) or type(error).__name__
    if len(text) > _LENGTH_MAX:
        text = f"{text[: _LENGTH_MAX // 2]} … {text[-_LENGTH_MAX // 2 :]}"
    if not isinstance(error, ApiError) and text.partition(" ")[0].isalpha():
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else text + "."


def _links(view: View, cluster: str) -> list[tuple[Section, str]]:
    links = []
    for section in SECTIONS:
        if (cluster or section.is_global) and section.is_shown(view, cluster):
            path = section.path
            path = view.global_url(path) if section.is_global else url_of(cluster, path)
            links.append((section, path))
    return links
