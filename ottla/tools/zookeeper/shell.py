"""`ottla zookeeper shell`: show and change nodes, one command or many."""

import asyncio
import json
import os
import shlex
import sys
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import CoordinationError
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.zookeeper import nodes, results
from ottla.tools.zookeeper.sessions import begin, check_listeners
from ottla.tools.zookeeper.start import DEFAULT_PORT
from ottla.tools.zookeeper.tls_files import tls_config, tls_options

_CONNECT_MS = 10_000


@click.command(
    "shell", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option("--connect", metavar="HOST:PORT[/PATH]", default=f"localhost:{DEFAULT_PORT}",
              show_default=True, help="The ensemble, or a broker's coordination.listener.")  # fmt: skip
@tls_config
@options.formatted
@click.argument("command_line", nargs=-1, metavar="[COMMAND]", type=click.UNPROCESSED)
def command(
    output: Output, connect: str, tls_config: str | None, command_line: tuple[str, ...]
) -> int:
    """Run COMMAND on ZooKeeper or the brokers' own tree; without one, read commands from a prompt.

    Commands are ls, get, stat, create, set, getAcl, setAcl, addauth, delete, deleteall, watch, help
    and quit, with the flags and the output of ZooKeeper's own shell. Options of this shell are
    before COMMAND; with `--output json` each result and each event of a watch is a line.

    \b
    ottla zookeeper shell ls /brokers/ids
    ottla zookeeper shell --connect localhost:2181/kafka get -s /controller
    ottla zookeeper shell
    """
    if command_line:
        nodes.parse(command_line[0], command_line[1:])
    shell = _Shell(connect, tls_options(tls_config), output)
    try:
        if command_line:
            shell.run(command_line)
            if command_line[0] == "watch":
                threading.Event().wait()
        else:
            shell.read_commands()
    except KeyboardInterrupt:
        # Ctrl-C ends `watch` and the shell.
        return 0
    finally:
        shell.close()
    return 0


class _Shell:
    """A session on an event loop of its own thread, while this thread reads commands."""

    def __init__(self, connect: str, options: Mapping[str, str], output: Output) -> None:
        self._connect = connect
        self._is_json = output.is_json
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            # A file with options of TLS is checked first, by the session.
            if not options:
                self._wait(check_listeners(connect))
            self._session: LiveSession = self._wait(
                begin(
                    connect,
                    connect_timeout_ms=_CONNECT_MS,
                    creates_path=False,
                    tls_options=options,
                )
            )
        except BaseException:
            self._end_loop()
            raise

    def run(self, command_line: Sequence[str]) -> None:
        """Run one command; OttlaError with ZooKeeper's sentence if it fails."""
        name, *arguments = command_line
        try:
            result = self._wait(nodes.run(self._session, name, arguments, self._announce))
        except CoordinationError as error:
            raise OttlaError(nodes.sentence_of(error)) from error
        if self._is_json:
            facts = nodes.facts_of(name, arguments) | results.facts_of(result)
            _show(json.dumps(facts))
            return
        for line in results.lines_of(result):
            _show(line)

    def _announce(self, event: results.WatchedEvent) -> None:
        if self._is_json:
            _show(json.dumps({"event": event.kind, "path": event.path}))
        else:
            _show(results.event_text(event))

    def read_commands(self) -> None:
        """Read commands from standard input until its end or `quit`; errors do not end the shell."""
        count = 0
        while True:
            try:
                line = self._read_line(count)
            except EOFError:
                return
            try:
                command_line = shlex.split(line)
            except ValueError as error:
                click.echo(f"{error}: {line}", err=True)
                continue
            count += 1
            if command_line and command_line[0] in ("quit", "exit"):
                return
            if command_line and command_line[0] == "help":
                self._help()
            elif command_line:
                self._run_reported(command_line)

    def _help(self) -> None:
        for name, item in nodes.COMMANDS.items():
            usage = nodes.usage_of(name)
            facts = {"usage": usage, "help": item.help}
            _show(json.dumps(facts) if self._is_json else f"  {usage:40}{item.help}")

    def _run_reported(self, command_line: Sequence[str]) -> None:
        try:
            self.run(command_line)
        except OttlaError as error:
            click.echo(str(error), err=True)

    def _read_line(self, count: int) -> str:
        if sys.stdin.isatty():
            state = self._session.state.name
            return input(f"[zk: {self._connect}({state}) {count}] ")
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line

    def close(self) -> None:
        """End the session."""
        self._wait(self._session.close())
        self._end_loop()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _show(line: str) -> None:
    try:
        click.echo(line)
    except BrokenPipeError:
        # As with other commands: the reader of the output has ended.
        os._exit(0)
