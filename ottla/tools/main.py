"""`ottla`: finds the verb, runs it, and turns what goes wrong into one sentence and an exit code.

0: done. 1: it could not be done, and standard error says what to do next. 2: the command was written
wrongly. No traceback for anything that Ottla raises on purpose; a bug keeps its traceback.
"""

import os
import sys
from collections.abc import Sequence

import click

import ottla
from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.errors import NotReachable, TimedOut
from ottla.tools.lazy import LazyGroup, Verb

_TOPIC = LazyGroup(
    "topic",
    {
        "create": Verb("ottla.tools.topic.create", "Create a topic."),
        "list": Verb("ottla.tools.topic.list", "List the topics."),
        "describe": Verb("ottla.tools.topic.describe", "Show partitions, leaders and offsets."),
        "config": Verb("ottla.tools.topic.config", "Show or change a topic's configuration."),
        "delete": Verb("ottla.tools.topic.delete", "Delete topics and their records."),
        "load": Verb("ottla.tools.topic.load", "Rows of files become records (Spark)."),
        "export": Verb("ottla.tools.topic.export", "Records become files (Spark)."),
    },
    help="Create, look at, configure, fill and delete topics.",
)
_GROUP = LazyGroup(
    "group",
    {
        "list": Verb("ottla.tools.group.list", "List the consumer groups."),
        "describe": Verb("ottla.tools.group.describe", "Show members, offsets and lag."),
        "reset": Verb("ottla.tools.group.reset", "Move a group's offsets (dry run first)."),
        "delete": Verb("ottla.tools.group.delete", "Delete groups and their offsets."),
    },
    help="Look at consumer groups, move their offsets, delete them.",
)
_LOG = LazyGroup(
    "log",
    {"dump": Verb("ottla.tools.log.dump", "Print segments, indexes, snapshots, checkpoints.")},
    help="Look into the files of a log directory.",
)
_ZOOKEEPER = LazyGroup(
    "zookeeper",
    {
        "export": Verb("ottla.tools.zookeeper.exporting", "From a log directory to a ZooKeeper."),
        "import": Verb("ottla.tools.zookeeper.importing", "From a ZooKeeper to a log directory."),
    },
    help="Carry a cluster's metadata to and from a ZooKeeper.",
)
_PIPELINE = LazyGroup(
    "pipeline",
    {
        "check": Verb("ottla.tools.pipeline.check", "Tell everything that is wrong with a file."),
        "run": Verb("ottla.tools.pipeline.run", "Run a pipeline on Spark."),
        "explain": Verb("ottla.tools.pipeline.explain", "Tell what a pipeline does."),
    },
    help="Pipelines as YAML files: topics, SQL, files and databases.",
)
_SPARK = LazyGroup(
    "spark",
    {"warm": Verb("ottla.tools.spark.warm", "Make Spark start in two thirds of the time.")},
    help="Spark on this machine.",
)
_STREAMS = LazyGroup(
    "streams",
    {
        "run": Verb("ottla.tools.streams.run", "Run a topology on Spark."),
        "list": Verb("ottla.tools.streams.list", "List the applications, and their lag."),
        "describe": Verb("ottla.tools.streams.describe", "Show input, lag and instances."),
        "reset": Verb("ottla.tools.streams.reset", "Begin an application anew (dry run first)."),
    },
    help="Applications of Kafka Streams' kind.",
)
_GROUPS = {
    "streams": _STREAMS,
    "pipeline": _PIPELINE,
    "spark": _SPARK,
    "topic": _TOPIC,
    "group": _GROUP,
    "log": _LOG,
    "zookeeper": _ZOOKEEPER,
}


class _Root(LazyGroup):
    """The verbs at the top; nouns are groups that are there already."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a noun's group or import a verb."""
        return _GROUPS.get(cmd_name) or super().get_command(ctx, cmd_name)


root = click.version_option(ottla.__version__, message="ottla %(version)s")(
    _Root(
        "ottla",
        {
            "up": Verb("ottla.tools.broker.up", "Start a broker here."),
            "produce": Verb("ottla.tools.record.produce", "Write lines as records."),
            "consume": Verb("ottla.tools.record.consume", "Write records as lines."),
            "topic": Verb("", "Create, look at, configure, fill and delete topics."),
            "group": Verb("", "Look at consumer groups, move their offsets, delete them."),
            "streams": Verb("", "Run a topology, or begin its application anew."),
            "log": Verb("", "Look into the files of a log directory."),
            "zookeeper": Verb("", "Carry a cluster's metadata to and from a ZooKeeper."),
            "pipeline": Verb("", "Run pipelines that are YAML files, on Spark."),
            "spark": Verb("", "Make Spark start faster."),
            "doctor": Verb("ottla.tools.doctor.command", "Find what is wrong, and the remedy."),
            "completion": Verb("ottla.tools.shell.completion", "Set up completion in a shell."),
        },
        help="Ottla: an Apache-Kafka-compatible event-streaming platform.",
    )
)


# What can be done about an answer of the cluster, where its own sentence does not say so.
_ADVICE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`ottla topic list` shows what there is",
    ErrorCode.GROUP_ID_NOT_FOUND: "`ottla group list` shows what there is",
    ErrorCode.TOPIC_ALREADY_EXISTS: "`ottla topic config` changes it, --if-not-exists accepts it",
    ErrorCode.INVALID_CONFIG: "docs/options.md and `ottla topic config NAME --all` list the options",
    ErrorCode.MESSAGE_TOO_LARGE: "`ottla topic config NAME --set max.message.bytes=…` raises it",
    ErrorCode.REQUEST_TIMED_OUT: "look at the broker's log, then try again",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "look at the broker's log, then try again",
}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        result = root.main(arguments, prog_name="ottla", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("stopped before it was done")
    except SystemExit:
        # How click ends after completion, and where the reader of a pipe has gone: both are fine.
        return 0
    except (OttlaError, OSError) as error:
        return _fail(explain(error))
    return result if isinstance(result, int) else 0


def explain(error: Exception) -> str:
    """Return the sentence for an error, with what can be done about it."""
    text = str(error).rstrip(".")
    if isinstance(error, NotReachable):
        return f"{text}: start a broker with `ottla up`, or name another with --bootstrap HOST:PORT"
    if isinstance(error, TimedOut):
        return f"{text}: look at the broker's log, or name another with --bootstrap HOST:PORT"
    if isinstance(error, ApiError) and error.code in _ADVICE:
        return f"{text}: {_ADVICE[error.code]}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return text


def main() -> None:
    """Entry point of the `ottla` script."""
    code = run()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _silence()
    sys.exit(code)


def _fail(sentence: str) -> int:
    try:
        click.echo(f"ottla: {sentence}", err=True)
    except BrokenPipeError:
        _silence()
    return 1


def _silence() -> None:
    """Let Python's last flush at exit write to nowhere instead of into the broken pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
