"""The browser of a ZooKeeper tree, for clusters that have one."""

from collections.abc import Mapping
from typing import Any

from ottla.base.errors import ConfigError
from ottla.console.accounts.roles import Role
from ottla.console.model.zookeeper import has_tree, read_znode, run_four_letter_command
from ottla.console.page import NotFound, Page, View

_COMMANDS = ("srvr", "mntr", "stat", "conf", "ruok")


def show(view: View) -> Mapping[str, Any]:
    """Return a node with its children, and the response to a four-letter command."""
    if not has_tree(view.cluster):
        raise NotFound(f"cluster {view.cluster.name!r} has no ZooKeeper address")
    path = view.query.text("path", "/")
    command = view.query.text("command")
    if command and command not in _COMMANDS:
        raise ConfigError(f"unknown command {command!r}: use {', '.join(_COMMANDS)}")
    node = read_znode(view.cluster, path)
    parts = [part for part in path.split("/") if part]
    return {
        "node": node,
        "crumbs": [(part, "/" + "/".join(parts[: index + 1])) for index, part in enumerate(parts)],
        "base": path.rstrip("/"),
        "commands": _COMMANDS,
        "command": command,
        "answer": run_four_letter_command(view.cluster, command) if command else None,
    }


# For admins: the tree has the hashed passwords of SCRAM users.
PAGES = (Page("/zookeeper", "zookeeper.html", show, "zookeeper", role=Role.ADMIN),)
