"""The commands of `ottla zookeeper shell`, with the flags of ZooKeeper's own shell.

Follows org.apache.zookeeper.cli (3.9).
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.base.errors import OttlaError
from ottla.cluster.zk import acls
from ottla.cluster.zk.acls import NodeAcl
from ottla.cluster.zk.live import Details, LiveSession
from ottla.cluster.zk.port import (
    ANY_VERSION,
    BadVersion,
    ConnectionSuspended,
    CoordinationError,
    InvalidAcl,
    NoAuth,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionLost,
)
from ottla.tools.text_files import is_number
from ottla.tools.zookeeper.results import CommandResult, WatchedEvent

_SENTENCES: Mapping[type[CoordinationError], str] = {
    NoNode: "Node does not exist: {}",
    NodeExists: "Node already exists: {}",
    NotEmpty: "Node not empty: {}",
    BadVersion: "version No is not valid : {}",
    NoAuth: "Insufficient permission : {}",
    InvalidAcl: "Acl is not valid : {}",
    NoChildrenForEphemerals: "Ephemerals cannot have children: {}",
    ConnectionSuspended: "the connection to ZooKeeper is lost: repeat the command in a moment",
    SessionLost: "the session has expired: start the shell again",
}


class UsageError(OttlaError):
    """A command that is written wrongly; the text shows how it is written."""


class CommandLine(NamedTuple):
    """A command line without the command: flags with their values, then positional arguments."""

    flags: Mapping[str, str]
    arguments: Sequence[str]

    @property
    def path(self) -> str:
        """The path that the command is for."""
        return self.arguments[0]

    @property
    def version(self) -> int:
        """The version that the caller expects."""
        return int(self.flags.get("v", ANY_VERSION))


Announce = Callable[[WatchedEvent], None]
Run = Callable[[LiveSession, CommandLine, Announce], Awaitable[CommandResult]]


class Command(NamedTuple):
    """One command: its flags (those with a colon have a value), its positional arguments, and its
    function."""

    flags: Sequence[str]
    arguments: str
    help: str
    run: Run


def sentence_of(error: CoordinationError) -> str:
    """Return ZooKeeper's sentence for an error."""
    return _SENTENCES[type(error)].format(error.path)


def parse(name: str, arguments: Sequence[str]) -> CommandLine:
    """Separate flags from positional arguments.

    UsageError if an argument is missing, or a flag is unknown.
    """
    command = COMMANDS.get(name)
    if command is None:
        raise UsageError(f"Command not found: {name} (known: {', '.join(COMMANDS)})")
    usage = UsageError(f"usage: {usage_of(name)}")
    with_value = {flag[0] for flag in command.flags if flag.endswith(":")}
    known = {flag[0] for flag in command.flags}
    flags: dict[str, str] = {}
    rest = list(arguments)
    while rest and len(rest[0]) == 2 and rest[0][0] == "-" and rest[0][1].isalpha():
        flag = rest.pop(0)[1]
        if flag not in known or (flag in with_value and not rest):
            raise usage
        flags[flag] = rest.pop(0) if flag in with_value else ""
    count = len(command.arguments.split())
    required = sum(not word.startswith("[") for word in command.arguments.split())
    version = flags.get("v", "0")
    if not required <= len(rest) <= count or not is_number(version.removeprefix("-"), 32):
        raise usage
    if command.arguments.startswith("path") and not rest[0].startswith("/"):
        raise UsageError("Path must start with / character")
    return CommandLine(flags, rest)


def usage_of(name: str) -> str:
    """Return how a command is written."""
    command = COMMANDS[name]
    flags = [
        f"[-{flag[0]} version]" if flag.endswith(":") else f"[-{flag}]" for flag in command.flags
    ]
    return " ".join([name, *flags, command.arguments])


def facts_of(name: str, arguments: Sequence[str]) -> dict[str, str]:
    """Return the command and the path that it is for, as JSON values."""
    has_path = COMMANDS[name].arguments.startswith("path")
    path = {"path": parse(name, arguments).path} if has_path else {}
    return {"command": name, **path}


async def run(
    session: LiveSession, name: str, arguments: Sequence[str], announce: Announce
) -> CommandResult:
    """Run one command; CoordinationError of the tree, or UsageError."""
    parsed = parse(name, arguments)
    return await COMMANDS[name].run(session, parsed, announce)


_EVENTS = {
    "CREATED": "NodeCreated",
    "DELETED": "NodeDeleted",
    "CHANGED": "NodeDataChanged",
    "CHILD": "NodeChildrenChanged",
}


def _event(session: LiveSession, path: str) -> WatchedEvent:
    """Return the event that the session has just announced."""
    return WatchedEvent(_EVENTS.get(session.last_event, "None"), path)


def _watch(
    session: LiveSession, command_line: CommandLine, announce: Announce
) -> Callable[[str], None] | None:
    if "w" not in command_line.flags:
        return None
    return lambda path: announce(_event(session, path))


async def _stats(session: LiveSession, command_line: CommandLine) -> Sequence[Details]:
    """Return the metadata of the node with -s."""
    return [await session.details(command_line.path)] if "s" in command_line.flags else []


async def _ls(session: LiveSession, command_line: CommandLine, announce: Announce) -> CommandResult:
    if "R" in command_line.flags:
        return CommandResult(
            paths=[command_line.path, *await _paths_below(session, command_line.path)]
        )
    watch = _watch(session, command_line, announce)
    children = await session.children(command_line.path, watch)
    return CommandResult(children=children, stats=await _stats(session, command_line))


async def _paths_below(session: LiveSession, path: str) -> list[str]:
    """Return the paths below a node in the order of ZooKeeper's shell: siblings before their
    children.
    """
    below = [f"{path.rstrip('/')}/{name}" for name in await session.children(path)]
    paths = list(below)
    for child in below:
        paths += await _paths_below(session, child)
    return paths


async def _get(
    session: LiveSession, command_line: CommandLine, announce: Announce
) -> CommandResult:
    data, _ = await session.get(command_line.path, _watch(session, command_line, announce))
    text = data.decode("utf-8", "backslashreplace")
    return CommandResult(data=text, stats=await _stats(session, command_line))


async def _stat(
    session: LiveSession, command_line: CommandLine, announce: Announce
) -> CommandResult:
    stat = await session.details(command_line.path)
    watch = _watch(session, command_line, announce)
    if watch is not None:
        await session.exists(command_line.path, watch)
    return CommandResult(stats=[stat])


async def _create(
    session: LiveSession, command_line: CommandLine, announce: Announce
) -> CommandResult:
    path = await session.create(
        command_line.path,
        command_line.arguments[1].encode() if len(command_line.arguments) > 1 else b"",
        ephemeral="e" in command_line.flags,
        sequential="s" in command_line.flags,
    )
    return CommandResult(created=path)


async def _set(
    session: LiveSession, command_line: CommandLine, announce: Announce
) -> CommandResult:
    await session.set(command_line.path, command_line.arguments[1].encode(), command_line.version)
    return CommandResult(stats=await _stats(session, command_line))


async def _delete(
    session: LiveSession, command_line: CommandLine, announce: Announce
) -> CommandResult:
    await session.delete(command_line.path, command_line.version)
    return CommandResult()


async def _delete_all(
    session: LiveSession, command_line: CommandLine, announce: Announce
) -> CommandResult:
    for name in await session.children(command_line.path):
        below = f"{command_line.path.rstrip('/')}/{name}"
        await _delete_all(session, CommandLine({}, [below]), announce)
    if command_line.path != "/":
        await session.delete(command_line.path)
    return CommandResult()


async def _get_acl(
    session: LiveSession, command_line: CommandLine, announce: Announce
) -> CommandResult:
    acl = await session.acl(command_line.path)
    return CommandResult(acl=acl, stats=await _stats(session, command_line))


async def _set_acl(
    session: LiveSession, command_line: CommandLine, announce: Announce
) -> CommandResult:
    entries = _parse_acl(command_line.arguments[1])
    paths = [command_line.path]
    if "R" in command_line.flags:
        paths += await _paths_below(session, command_line.path)
    stats: list[Details] = []
    for path in paths:
        await session.set_acl(path, entries, command_line.version)
        stats += await _stats(session, command_line._replace(arguments=[path]))
    return CommandResult(stats=stats)


def _parse_acl(text: str) -> list[NodeAcl]:
    """Return the list in `scheme:id:permissions,…`; the id may have colons. UsageError."""
    entries = []
    for word in text.split(","):
        scheme, has_id, rest = word.partition(":")
        identity, has_permissions, letters = rest.rpartition(":")
        if not has_id or not has_permissions:
            raise UsageError(f"{word} does not have the form scheme:id:perm")
        unknown = [letter for letter in letters if letter not in acls.LETTERS]
        if unknown:
            raise UsageError(f"Unknown perm type: {unknown[0]}")
        permissions = sum(acls.LETTERS[letter] for letter in set(letters))
        entries.append(NodeAcl(permissions, scheme, identity))
    return entries


async def _add_user(
    session: LiveSession, command_line: CommandLine, announce: Announce
) -> CommandResult:
    await session.add_user(*command_line.arguments)
    return CommandResult()


async def _watch_node(
    session: LiveSession, command_line: CommandLine, announce: Announce
) -> CommandResult:
    """Announce every change of a node and its children until the session ends."""
    arming: set[asyncio.Future[None]] = set()

    async def arm() -> None:
        await session.exists(command_line.path, changed)
        # A node that does not exist has no children; its creation is announced.
        with contextlib.suppress(NoNode):
            await session.children(command_line.path, changed)

    def changed(path: str) -> None:
        announce(_event(session, path))
        # ZooKeeper announces one change only; this sets the next watch.
        task = asyncio.ensure_future(arm())
        arming.add(task)
        task.add_done_callback(arming.discard)

    await arm()
    return CommandResult()


COMMANDS: Mapping[str, Command] = {
    "ls": Command(["s", "w", "R"], "path", "List a node's children.", _ls),
    "get": Command(["s", "w"], "path", "Show a node's data.", _get),
    "stat": Command(["w"], "path", "Show a node's metadata.", _stat),
    "create": Command(["s", "e"], "path [data]", "Create a node.", _create),
    "set": Command(["s", "v:"], "path data", "Replace a node's data.", _set),
    "getAcl": Command(["s"], "path", "Show who may do what with a node.", _get_acl),
    "setAcl": Command(
        ["s", "v:", "R"], "path acl", "Replace a node's access control list.", _set_acl
    ),
    "addauth": Command([], "scheme auth", "Authenticate as another user, too.", _add_user),
    "delete": Command(["v:"], "path", "Delete a node without children.", _delete),
    "deleteall": Command([], "path", "Delete a node and everything below it.", _delete_all),
    "watch": Command([], "path", "Show the changes of a node until Ctrl-C.", _watch_node),
}
