"""The commands of `ottla zookeeper shell`, with the flags and the output of ZooKeeper's own shell.

Follows org.apache.zookeeper.cli (3.9).
"""

import asyncio
import contextlib
import time
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


Show = Callable[[str], None]
Run = Callable[[LiveSession, CommandLine, Show], Awaitable[None]]


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
    if not required <= len(rest) <= count or not flags.get("v", "0").lstrip("-").isdigit():
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


async def run(session: LiveSession, name: str, arguments: Sequence[str], show: Show) -> None:
    """Run one command; CoordinationError of the tree, or UsageError."""
    parsed = parse(name, arguments)
    await COMMANDS[name].run(session, parsed, show)


def stat_lines(stat: Details) -> list[str]:
    """Return the lines that show a node's metadata."""
    return [
        f"cZxid = {stat.czxid:#x}",
        f"ctime = {_date(stat.ctime_ms)}",
        f"mZxid = {stat.mzxid:#x}",
        f"mtime = {_date(stat.mtime_ms)}",
        f"pZxid = {stat.pzxid:#x}",
        f"cversion = {stat.children_version}",
        f"dataVersion = {stat.version}",
        f"aclVersion = {stat.acl_version}",
        f"ephemeralOwner = {stat.ephemeral_owner & (2**64 - 1):#x}",
        f"dataLength = {stat.data_length}",
        f"numChildren = {stat.children_count}",
    ]


def _date(milliseconds: int) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Z %Y", time.localtime(milliseconds / 1000))


_EVENTS = {
    "CREATED": "NodeCreated",
    "DELETED": "NodeDeleted",
    "CHANGED": "NodeDataChanged",
    "CHILD": "NodeChildrenChanged",
}


def _watch(
    session: LiveSession, command_line: CommandLine, show: Show
) -> Callable[[str], None] | None:
    if "w" not in command_line.flags:
        return None
    return lambda path: show(event_text(session, path))


def event_text(session: LiveSession, path: str) -> str:
    """Return the text for the event that the session has just announced."""
    kind = _EVENTS.get(session.last_event, "None")
    return f"\nWATCHER::\n\nWatchedEvent state:SyncConnected type:{kind} path:{path}"


async def _ls(session: LiveSession, command_line: CommandLine, show: Show) -> None:
    if "R" in command_line.flags:
        show(command_line.path)
        await _list_below(session, command_line.path, show)
        return
    names = await session.children(command_line.path, _watch(session, command_line, show))
    show(f"[{', '.join(names)}]")
    if "s" in command_line.flags:
        await _stat(session, command_line._replace(flags={}), show)


async def _list_below(session: LiveSession, path: str, show: Show) -> None:
    """Show the paths below a node in the order of ZooKeeper's shell: siblings before their
    children.
    """
    below = [f"{path.rstrip('/')}/{name}" for name in await session.children(path)]
    for child in below:
        show(child)
    for child in below:
        await _list_below(session, child, show)


async def _get(session: LiveSession, command_line: CommandLine, show: Show) -> None:
    data, _ = await session.get(command_line.path, _watch(session, command_line, show))
    show(data.decode("utf-8", "backslashreplace"))
    if "s" in command_line.flags:
        await _stat(session, command_line._replace(flags={}), show)


async def _stat(session: LiveSession, command_line: CommandLine, show: Show) -> None:
    for line in stat_lines(await session.details(command_line.path)):
        show(line)
    watch = _watch(session, command_line, show)
    if watch is not None:
        await session.exists(command_line.path, watch)


async def _create(session: LiveSession, command_line: CommandLine, show: Show) -> None:
    path = await session.create(
        command_line.path,
        command_line.arguments[1].encode() if len(command_line.arguments) > 1 else b"",
        ephemeral="e" in command_line.flags,
        sequential="s" in command_line.flags,
    )
    show(f"Created {path}")


async def _set(session: LiveSession, command_line: CommandLine, show: Show) -> None:
    await session.set(command_line.path, command_line.arguments[1].encode(), command_line.version)
    if "s" in command_line.flags:
        await _stat(session, command_line._replace(flags={}), show)


async def _delete(session: LiveSession, command_line: CommandLine, show: Show) -> None:
    await session.delete(command_line.path, command_line.version)


async def _delete_all(session: LiveSession, command_line: CommandLine, show: Show) -> None:
    for name in await session.children(command_line.path):
        below = f"{command_line.path.rstrip('/')}/{name}"
        await _delete_all(session, CommandLine({}, [below]), show)
    if command_line.path != "/":
        await session.delete(command_line.path)


async def _get_acl(session: LiveSession, command_line: CommandLine, show: Show) -> None:
    for entry in await session.acl(command_line.path):
        show(f"'{entry.scheme},'{entry.id}")
        show(f": {acls.letters(entry.permissions)}")
    if "s" in command_line.flags:
        await _stat(session, command_line._replace(flags={}), show)


async def _set_acl(session: LiveSession, command_line: CommandLine, show: Show) -> None:
    entries = _parse_acl(command_line.arguments[1])
    below: list[str] = []
    if "R" in command_line.flags:
        await _list_below(session, command_line.path, below.append)
    for path in (command_line.path, *below):
        await session.set_acl(path, entries, command_line.version)
        if "s" in command_line.flags:
            await _stat(session, CommandLine({}, [path]), show)


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


async def _add_user(session: LiveSession, command_line: CommandLine, show: Show) -> None:
    await session.add_user(*command_line.arguments)


async def _watch_node(session: LiveSession, command_line: CommandLine, show: Show) -> None:
    """Announce every change of a node and its children until the session ends."""
    arming: set[asyncio.Future[None]] = set()

    async def arm() -> None:
        await session.exists(command_line.path, changed)
        # A node that does not exist has no children; its creation is announced.
        with contextlib.suppress(NoNode):
            await session.children(command_line.path, changed)

    def changed(path: str) -> None:
        show(event_text(session, path))
        # ZooKeeper announces one change only; this sets the next watch.
        task = asyncio.ensure_future(arm())
        arming.add(task)
        task.add_done_callback(arming.discard)

    await arm()


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
