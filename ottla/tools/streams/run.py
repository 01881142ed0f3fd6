"""`ottla streams run MODULE:TOPOLOGY`: run a topology until Ctrl-C or an error."""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred, deferred_module, load_module, load_users_module
from ottla.streams.model.user_errors import UsersErrors
from ottla.streams.settings.config import StreamsConfig
from ottla.streams.settings.foreign_options import LOCAL, SPARK
from ottla.tools import options
from ottla.tools.output import Output, note
from ottla.tools.spark import needed
from ottla.tools.spark.stderr_filter import filter_spark_stderr
from ottla.tools.text_files import is_number

# The help needs no part of a topology.
if TYPE_CHECKING:
    from ottla import streams
    from ottla.streams.application.states import State
else:
    streams = deferred_module("ottla.streams")

_suggest = deferred("ottla.streams.pipelines.problems", "suggest")
_GUARANTEES = (StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2)
_LOOK_S = 0.2


@click.command("run")
@click.argument("reference", metavar="MODULE:TOPOLOGY")
@click.option(
    "--application-id", metavar="ID", help="The application id; default: the module's name."
)
@options.secured
@click.option(
    "--guarantee",
    type=click.Choice(_GUARANTEES),
    default=StreamsConfig.AT_LEAST_ONCE,
    show_default=True,
    help="The processing guarantee.",
)
@click.option(
    "--engine",
    type=click.Choice((SPARK, LOCAL)),
    help="The engine: spark (the default), or local, which runs tasks in this process.",
)
@click.option("--state-dir", metavar="FOLDER", help="The folder for checkpoints.")
@click.option(
    "--master", metavar="URL", help="The Spark cluster, or local[N]; default: this machine."
)
@click.option(
    "--set",
    "config",
    multiple=True,
    metavar="NAME=VALUE",
    callback=options.parse_settings,
    help="Another option of KafkaStreams (a number or a string); may be repeated.",
)
@options.formatted
def command(
    output: Output,
    reference: str,
    access: Any,
    application_id: str | None,
    guarantee: str,
    config: dict[str, str],
    **option_values: Any,
) -> None:
    """Run a topology on Spark, or in this process.

    MODULE is a Python module. TOPOLOGY is the name of a topology or a StreamsBuilder in it, or of a
    function that returns one.

    \b
    ottla streams run wordcount:topology
    ottla streams run wordcount:topology --engine local
    """
    option_values["processing_guarantee"] = guarantee
    by_set = {name.replace(".", "_") for name in config}
    arguments: dict[str, Any] = {
        name: value
        for name, value in option_values.items()
        if value is not None and name not in by_set
    }
    # Kafka's option names, and the application's own.
    settings = dict(access.options)
    settings |= {name: int(text) if _is_number(text) else text for name, text in config.items()}
    topology, module = load_topology(reference)
    if option_values.get("master"):
        arguments["py_files"] = [_file_of(module)]
    is_local = LOCAL in (option_values["engine"], settings.get("engine"))
    if not is_local:
        needed.check_installed()
    app = load_module("ottla.streams.kafka_streams").KafkaStreams(
        topology,
        settings,
        application_id=application_id or module.rpartition(".")[2],
        bootstrap_servers=access.bootstrap,
        **arguments,
    )
    app.set_state_listener(lambda new, old: _tell(output, app, new, old))
    if not is_local:
        filter_spark_stderr()
    # Handle SIGTERM, which stops a service, like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _run(app)


def _run(app: Any) -> None:
    with app, contextlib.suppress(KeyboardInterrupt):
        while not app.await_termination(_LOOK_S):
            continue


def _is_number(text: str) -> bool:
    return is_number(text.removeprefix("-"), 64)


def _tell(output: Output, app: Any, new: "State", old: "State") -> None:
    facts = {"application_id": app.application_id, "state": new.name, "before": old.name}
    facts["time"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if output.is_json:
        output.done("", **facts)
        sys.stdout.flush()
    elif not sys.stderr.isatty():
        # On a terminal, the progress line shows the state.
        note(f"{app.application_id}: {old.name} -> {new.name}")


def load_topology(reference: str) -> "tuple[streams.Topology, str]":
    """Return the topology named by MODULE:TOPOLOGY, and the module; UsageError if it cannot be
    loaded.
    """
    module, colon, name = reference.partition(":")
    if not colon or not module or not name:
        raise click.UsageError(
            f"{reference!r} is not of the form MODULE:NAME, such as wordcount:topology."
        )
    # As with `python -m`, modules of the current folder can be imported.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    loaded = _imported(module, reference)
    try:
        target = getattr(loaded, name)
    except AttributeError as error:
        message = f"{reference!r}: module {module} has no {name}. {_near(module, name)}"
        raise click.UsageError(message) from error
    if callable(target) and not isinstance(target, streams.Topology | streams.StreamsBuilder):
        with UsersErrors(f"The function {name} of {module} failed.", ConfigError):
            target = target()
    if isinstance(target, streams.StreamsBuilder):
        target = target.build()
    if not isinstance(target, streams.Topology):
        kind = type(target).__name__
        raise click.UsageError(
            f"{reference!r} is {kind}: expected a Topology or a function that returns one."
        )
    return target, module


def _imported(module: str, reference: str) -> ModuleType:
    with UsersErrors(f"Cannot import {module}.", ConfigError):
        try:
            return load_users_module(module)
        except ModuleNotFoundError as error:
            missing = error.name
            if missing is None or not f"{module}.".startswith(f"{missing}."):
                # The module exists, but one that it imports does not.
                raise
    here = [file.stem for file in Path.cwd().glob("*.py")]
    raise click.UsageError(
        f"{reference!r}: No module named {missing!r}; looked in {os.getcwd()}, too. {_suggest(module, here)}"
    )


def _near(module: str, name: str) -> str:
    """Return a hint with the module's topologies, builders and functions."""
    named = vars(sys.modules[module]).items()
    symbols = [
        symbol
        for symbol, value in named
        if isinstance(value, streams.Topology | streams.StreamsBuilder)
        or getattr(value, "__module__", "") == module
    ]
    return str(_suggest(name, symbols))


def _file_of(module: str) -> str:
    """Return the file that executors need; a package must be passed with py_files."""
    loaded = sys.modules[module]
    if "." in module or hasattr(loaded, "__path__") or loaded.__file__ is None:
        raise click.UsageError(
            f"{module} is part of a package: install it on the executors of the cluster, or use "
            "KafkaStreams with py_files."
        )
    return loaded.__file__
