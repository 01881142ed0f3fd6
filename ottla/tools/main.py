"""`ottla`: find the command, run it, and turn errors into one sentence and an exit code.

Exit codes: 0: success. 1: the command failed, and standard error says what to do next. 2: usage
error. Errors that Ottla raises on purpose are printed without a traceback; a bug keeps its
traceback.
"""

import gc
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
        "search": Verb("ottla.tools.topic.search", "Find records by key, value, header or JSON."),
        "copy": Verb("ottla.tools.topic.copy", "Copy a topic, also to another cluster."),
        "trim": Verb("ottla.tools.topic.trim", "Delete the records before a position."),
        "load": Verb("ottla.tools.topic.load", "Load rows of files as records (Spark)."),
        "export": Verb("ottla.tools.topic.export", "Export records to files (Spark)."),
    },
    help="Manage topics.",
)
_GROUP = LazyGroup(
    "group",
    {
        "list": Verb("ottla.tools.group.list", "List the consumer groups."),
        "describe": Verb("ottla.tools.group.describe", "Show members, offsets and lag."),
        "seek": Verb("ottla.tools.group.seek", "Move a group to a position (dry run by default)."),
        "reset": Verb("ottla.tools.group.reset", "Reset a group's offsets (dry run by default)."),
        "delete": Verb("ottla.tools.group.delete", "Delete groups and their offsets."),
    },
    help="Manage consumer groups and their offsets.",
)
_LOG = LazyGroup(
    "log",
    {"dump": Verb("ottla.tools.log.dump", "Print segments, indexes, snapshots, checkpoints.")},
    help="Inspect the files of a log directory.",
)
_ZOOKEEPER = LazyGroup(
    "zookeeper",
    {
        "start": Verb("ottla.tools.zookeeper.start", "Run a ZooKeeper on this machine."),
        "shell": Verb("ottla.tools.zookeeper.shell", "Show and change nodes."),
        "export": Verb(
            "ottla.tools.zookeeper.exporting", "Copy from a log directory to ZooKeeper."
        ),
        "import": Verb(
            "ottla.tools.zookeeper.importing", "Copy from ZooKeeper to a log directory."
        ),
    },
    help="Run ZooKeeper, look into it, and copy a cluster's metadata.",
)
_REPLICA = LazyGroup(
    "replica",
    {"verify": Verb("ottla.tools.replica.verify", "Compare replicas byte by byte.")},
    help="Compare the replicas of partitions.",
)
_BROKER = LazyGroup(
    "broker",
    {
        "start": Verb("ottla.tools.broker.start", "Run one broker of a cluster."),
        "stop": Verb("ottla.tools.broker.stop", "Stop a broker of this machine cleanly."),
    },
    help="Run and stop the brokers of a cluster.",
)
_PIPELINE = LazyGroup(
    "pipeline",
    {
        "check": Verb("ottla.tools.pipeline.check", "Report all problems of a file."),
        "run": Verb("ottla.tools.pipeline.run", "Run a pipeline on Spark."),
        "explain": Verb("ottla.tools.pipeline.explain", "Describe a pipeline."),
    },
    help="Check, explain and run YAML pipelines.",
)
_SPARK = LazyGroup(
    "spark",
    {"warm": Verb("ottla.tools.spark.warm", "Make Spark start faster.")},
    help="Manage Spark on this machine.",
)
_STREAMS = LazyGroup(
    "streams",
    {
        "run": Verb("ottla.tools.streams.run", "Run a topology on Spark."),
        "list": Verb("ottla.tools.streams.list", "List the applications with their lag."),
        "describe": Verb("ottla.tools.streams.describe", "Show offsets, lag and instances."),
        "reset": Verb("ottla.tools.streams.reset", "Reset an application (dry run by default)."),
    },
    help="Run and manage stream applications.",
)
_GENERATE = LazyGroup(
    "generate",
    {
        "grafana-dashboard": Verb("ottla.tools.generate.grafana_dashboard", "A dashboard."),
        "prometheus-config": Verb(
            "ottla.tools.generate.prometheus_config", "A scrape configuration."
        ),
        "alert-rules": Verb("ottla.tools.generate.alert_rules", "Alerts for Prometheus."),
        "systemd": Verb("ottla.tools.generate.systemd", "A unit that runs a broker."),
    },
    help="Write files for Grafana, Prometheus and systemd.",
)
_CLUSTER = LazyGroup(
    "cluster",
    {
        "info": Verb("ottla.tools.cluster.info", "Show the cluster and its brokers."),
        "health": Verb("ottla.tools.cluster.health", "Check brokers, leaders and replicas."),
        "move": Verb("ottla.tools.cluster.move", "Move replicas between brokers."),
    },
    help="Show a cluster, check it, and move its replicas.",
)
_PROFILE = LazyGroup(
    "profile",
    {
        "create": Verb("ottla.tools.profile.create", "Name a cluster."),
        "use": Verb("ottla.tools.profile.use", "Make a profile the current one."),
        "list": Verb("ottla.tools.profile.list", "List the profiles."),
        "delete": Verb("ottla.tools.profile.delete", "Delete a profile."),
    },
    help="Name clusters, so that commands need no --bootstrap.",
)
_QUOTA = LazyGroup(
    "quota",
    {
        "list": Verb("ottla.tools.quota.list", "List quotas."),
        "set": Verb("ottla.tools.quota.set", "Set and remove quotas."),
    },
    help="Limit users, clients and addresses.",
)
_DEBUG = LazyGroup(
    "debug",
    {"bundle": Verb("ottla.tools.debug.bundle", "Collect facts for a report, without secrets.")},
    help="Collect what is needed to find a problem.",
)
_GROUPS = {
    "generate": _GENERATE,
    "cluster": _CLUSTER,
    "profile": _PROFILE,
    "quota": _QUOTA,
    "debug": _DEBUG,
    "streams": _STREAMS,
    "pipeline": _PIPELINE,
    "spark": _SPARK,
    "topic": _TOPIC,
    "group": _GROUP,
    "log": _LOG,
    "replica": _REPLICA,
    "broker": _BROKER,
    "zookeeper": _ZOOKEEPER,
}


def _noun(name: str) -> Verb:
    """Return the row of a group in the list of all commands."""
    return Verb("", _GROUPS[name].help or "")


class _Root(LazyGroup):
    """The top-level group: nouns are loaded groups, the other commands are imported when called."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a noun's group or import a command."""
        return _GROUPS.get(cmd_name) or super().get_command(ctx, cmd_name)


root = click.version_option(ottla.__version__, message="ottla %(version)s")(
    _Root(
        "ottla",
        {
            "up": Verb("ottla.tools.broker.up", "Start brokers on this machine."),
            "broker": _noun("broker"),
            "produce": Verb("ottla.tools.record.produce", "Write lines as records."),
            "consume": Verb("ottla.tools.record.consume", "Write records as lines."),
            "topic": _noun("topic"),
            "group": _noun("group"),
            "cluster": _noun("cluster"),
            "quota": _noun("quota"),
            "profile": _noun("profile"),
            "replica": _noun("replica"),
            "streams": _noun("streams"),
            "log": _noun("log"),
            "zookeeper": _noun("zookeeper"),
            "pipeline": _noun("pipeline"),
            "spark": _noun("spark"),
            "generate": _noun("generate"),
            "console": Verb("ottla.tools.console.command", "Serve the console, for a browser."),
            "doctor": Verb(
                "ottla.tools.doctor.command", "Diagnose problems of clients and brokers."
            ),
            "learn": Verb("ottla.tools.learn.command", "Answer questions by experiments."),
            "debug": _noun("debug"),
            "scripts": Verb("ottla.tools.scripts.command", "Install Apache Kafka's scripts."),
            "completion": Verb("ottla.tools.shell.completion", "Set up completion in a shell."),
        },
        help="Ottla: an Apache-Kafka-compatible event-streaming platform.",
    )
)


# Remedies for error codes of the cluster whose messages do not contain one.
_ADVICE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`ottla topic list` lists the topics",
    ErrorCode.GROUP_ID_NOT_FOUND: "`ottla group list` lists the groups",
    ErrorCode.TOPIC_ALREADY_EXISTS: "use `ottla topic config` to change it, or --if-not-exists to ignore this",
    ErrorCode.INVALID_CONFIG: "docs/options.md and `ottla topic config NAME --all` list the options",
    ErrorCode.MESSAGE_TOO_LARGE: "raise it with `ottla topic config NAME --set max.message.bytes=…`",
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
        return _fail("interrupted before it was complete")
    except SystemExit:
        # click raises SystemExit after completion, and when the reader of a pipe has ended. Both
        # are fine.
        return 0
    except (OttlaError, OSError) as error:
        return _fail(explain(error))
    return result if isinstance(result, int) else 0


def explain(error: Exception) -> str:
    """Return the message for an error, with its remedy."""
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
    # At exit Python collects garbage twice; without objects to visit, that takes no time.
    gc.freeze()
    sys.exit(code)


def _fail(sentence: str) -> int:
    try:
        click.echo(f"ottla: {sentence}", err=True)
    except BrokenPipeError:
        _silence()
    return 1


def _silence() -> None:
    """Redirect standard output, so that Python's flush at exit does not fail on the broken pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
