"""`ottla`: find the command, run it, and turn errors into one sentence and an exit code.

Exit codes: 0: success. 1: the command failed, and standard error says what to do next. 2: usage
error. 130: Ctrl-C interrupted it, as a shell expects; a command that runs until Ctrl-C ends with 0.
Errors that Ottla raises on purpose are printed without a traceback; a bug keeps its
traceback.
"""

import errno
import gc
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import click

import ottla
from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.base.loading import load
from ottla.client.errors import NoBroker, NotReachable, TimedOut
from ottla.tools.lazy import LazyGroup, Verb

# The package of the distribution ottla-scripts.
_SCRIPTS = "ottla_scripts"
# Each noun has a help text, and a help text for each verb. The command `ottla topic create` is in
# ottla/tools/topic/create.py.
_NOUNS: dict[str, tuple[str, dict[str, str]]] = {
    "topic": (
        "Manage topics.",
        {
            "create": "Create a topic.",
            "list": "List the topics.",
            "describe": "Show partitions, leaders and offsets.",
            "config": "Show or change a topic's configuration.",
            "add-partitions": "Increase the number of partitions.",
            "delete": "Delete topics and their records.",
            "search": "Find records by key, value, header or JSON.",
            "copy": "Copy a topic, also to another cluster.",
            "trim": "Delete the records before a position.",
            "load": "Load rows of files as records (Spark).",
            "export": "Export records to files (Spark).",
        },
    ),
    "group": (
        "Manage consumer groups and their offsets.",
        {
            "list": "List the consumer groups.",
            "describe": "Show members, offsets and lag.",
            "reset": "Move a group, as kafka-consumer-groups does (dry run by default).",
            "delete": "Delete groups with their offsets.",
        },
    ),
    "log": (
        "Inspect log directories and their files, and format them.",
        {
            "format": "Give a new cluster a chosen id.",
            "info": "Show the cluster that log directories belong to.",
            "dump": "Print segments, indexes, snapshots, checkpoints.",
            "dirs": "Show the sizes of replicas by log directory.",
            "repair": "Restore logs that a broker has set aside.",
        },
    ),
    "zookeeper": (
        "Run ZooKeeper, show and secure its znodes, and copy a cluster's metadata.",
        {
            "start": "Run ZooKeeper servers on this machine.",
            "stop": "Stop ZooKeeper servers of this machine.",
            "shell": "Show and change znodes.",
            "secure": "Let only the brokers change a cluster's znodes.",
            "unsecure": "Let everyone change a cluster's znodes.",
            "export": "Copy the metadata of a log directory to ZooKeeper.",
            "import": "Copy the metadata in ZooKeeper to a log directory.",
        },
    ),
    "replica": (
        "Compare the replicas of partitions.",
        {"verify": "Compare replicas byte by byte."},
    ),
    "broker": (
        "Run and stop brokers, and show their APIs and metrics.",
        {
            "start": "Run one broker of a cluster.",
            "stop": "Stop a broker of this machine cleanly.",
            "apis": "Show the API versions of brokers.",
            "metrics": "Show metrics by their JMX names.",
        },
    ),
    "perf": (
        "Measure and verify producers and consumers.",
        {
            "produce": "Measure the rate and latency of a producer.",
            "consume": "Measure the rate of a consumer.",
            "latency": "Measure the latency from producer to consumer.",
            "verifiable-produce": "Write numbers, and report each acknowledgement.",
            "verifiable-consume": "Read as a group, and report polls and commits.",
            "workload": "Run producers, consumers and faults of a file.",
        },
    ),
    "pipeline": (
        "Check, explain and run YAML pipelines.",
        {
            "check": "Report all problems of a file.",
            "run": "Run a pipeline on Spark.",
            "list": "List the pipelines of this machine.",
            "status": "Show rates, lag and bad records of a pipeline.",
            "explain": "Describe a pipeline.",
        },
    ),
    "spark": ("Make Spark start faster on this machine.", {"warm": "Make Spark start faster."}),
    "streams": (
        "Run and manage stream applications.",
        {
            "run": "Run a topology on Spark.",
            "list": "List the applications with their lag.",
            "describe": "Show offsets, lag and instances.",
            "reset": "Reset an application (dry run by default).",
        },
    ),
    "generate": (
        "Write files for Grafana, Prometheus, systemd and Kubernetes.",
        {
            "grafana-dashboard": "Write a Grafana dashboard.",
            "prometheus-config": "Write a configuration for Prometheus.",
            "alert-rules": "Write alert rules for Prometheus.",
            "systemd": "Write a systemd unit for a broker or a pipeline.",
            "kubernetes": "Write Kubernetes manifests for a pipeline.",
        },
    ),
    "cluster": (
        "Show a cluster, check it, move its replicas, elect leaders, and replace its secret.",
        {
            "info": "Show the cluster's id, and its brokers with their addresses.",
            "health": "Check brokers, leaders and replicas.",
            "move": "Move replicas between brokers (dry run by default).",
            "elect": "Elect leaders of partitions (dry run by default).",
            "features": "Show the levels of features.",
            "quorum": "Show and change the quorum of KRaft (dry run by default).",
            "rotate-secret": "Replace the secret by which brokers know each other.",
        },
    ),
    "profile": (
        "Name clusters, so that commands need no --bootstrap.",
        {
            "create": "Store a cluster's address under a name.",
            "use": "Make a profile the current one.",
            "list": "List the profiles.",
            "delete": "Delete a profile.",
        },
    ),
    "quota": (
        "Limit users, clients and addresses.",
        {
            "list": "List quotas.",
            "set": "Set and remove quotas.",
        },
    ),
    "acl": (
        "Manage access control lists of clusters that have them.",
        {
            "list": "List the entries.",
            "add": "Allow or deny operations of principals.",
            "remove": "Remove entries.",
        },
    ),
    "token": (
        "Manage delegation tokens of clusters that issue them.",
        {
            "list": "List the tokens.",
            "create": "Issue a token.",
            "renew": "Postpone the expiry of a token.",
            "expire": "Delete a token, or let it expire.",
        },
    ),
    "security": (
        "Create certificates for development, and set passwords of users.",
        {
            "certificates": "Create an authority and certificates.",
            "user": "Set the password of a user, or list users.",
        },
    ),
    "transaction": (
        "Show transactions, and abort them.",
        {
            "list": "List the transactional ids.",
            "describe": "Show state, producer and partitions.",
            "producers": "Show the producers of partitions.",
            "hanging": "Find transactions that no coordinator ends.",
            "abort": "Abort a transaction, and fence its producer.",
        },
    ),
    "metrics": (
        "Manage the subscriptions to metrics of clients (KIP-714).",
        {
            "list": "List the subscriptions.",
            "set": "Create or change a subscription.",
            "delete": "Delete subscriptions.",
        },
    ),
    "debug": (
        "Collect facts for the report of a problem.",
        {"bundle": "Collect facts for a report, without secrets."},
    ),
}
# Verbs whose module has another name: `import` is a keyword of Python.
_OTHER_MODULES: dict[tuple[str, str], str] = {
    ("broker", "metrics"): "monitoring.metrics",
    ("zookeeper", "export"): "exporting",
    ("zookeeper", "import"): "importing",
    ("zookeeper", "secure"): "securing",
    ("zookeeper", "unsecure"): "unsecuring",
}


def _group(noun: str) -> LazyGroup:
    help, verbs = _NOUNS[noun]
    modules = {verb: _OTHER_MODULES.get((noun, verb), verb.replace("-", "_")) for verb in verbs}
    return LazyGroup(
        noun,
        {verb: Verb(f"ottla.tools.{noun}.{modules[verb]}", text) for verb, text in verbs.items()},
        help=help,
    )


GROUPS = {noun: _group(noun) for noun in _NOUNS}


def _noun(name: str) -> Verb:
    """Return the row of a group in the list of all commands."""
    return Verb("", GROUPS[name].help or "")


class _Root(LazyGroup):
    """The top-level group: nouns are loaded groups, the other commands are imported when called."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a noun's group or import a command; ConfigError if it is not installed."""
        try:
            return GROUPS.get(cmd_name) or super().get_command(ctx, cmd_name)
        except ModuleNotFoundError as error:
            if error.name != _SCRIPTS:
                raise
            if ctx.resilient_parsing:
                return click.Command(cmd_name)
            raise ConfigError(
                "Apache Kafka's scripts are a package of their own: "
                'install it with `pip install "ottla[scripts]"`'
            ) from error


root = click.version_option(ottla.__version__, message="ottla %(version)s")(
    _Root(
        "ottla",
        {
            "up": Verb("ottla.tools.broker.up", "Start brokers on this machine."),
            "broker": _noun("broker"),
            "produce": Verb("ottla.tools.record.produce", "Write records, one per line of input."),
            "consume": Verb("ottla.tools.record.consume", "Read records and print them."),
            "topic": _noun("topic"),
            "group": _noun("group"),
            "transaction": _noun("transaction"),
            "cluster": _noun("cluster"),
            "quota": _noun("quota"),
            "acl": _noun("acl"),
            "token": _noun("token"),
            "security": _noun("security"),
            "metrics": _noun("metrics"),
            "profile": _noun("profile"),
            "replica": _noun("replica"),
            "streams": _noun("streams"),
            "log": _noun("log"),
            "zookeeper": _noun("zookeeper"),
            "perf": _noun("perf"),
            "pipeline": _noun("pipeline"),
            "spark": _noun("spark"),
            "generate": _noun("generate"),
            "console": Verb("ottla.tools.console.command", "Serve the console, for a browser."),
            "doctor": Verb(
                "ottla.tools.doctor.command", "Diagnose problems of clients and brokers."
            ),
            "learn": Verb("ottla.learn.command", "Show how Kafka works, by experiments."),
            "debug": _noun("debug"),
            "scripts": Verb(f"{_SCRIPTS}.command", "Run and install Apache Kafka's scripts."),
            "completion": Verb("ottla.tools.shell.completion", "Set up completion in a shell."),
        },
        help="Ottla: an Apache-Kafka-compatible event-streaming platform.\n\n"
        "The first steps, each in a terminal; `ottla COMMAND --help` explains a command:\n\n"
        "\b\nottla up\necho hello | ottla produce greetings\nottla consume greetings\n",
    )
)


# Remedies for error codes of the cluster whose messages do not contain one.
_ADVICE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`ottla topic list` lists the topics",
    ErrorCode.GROUP_ID_NOT_FOUND: "`ottla group list` lists the groups",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`ottla transaction list` lists the ids",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "`ottla token list` lists the tokens",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "connect with SASL or a client's certificate (--command-config FILE), and not with a token",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "set delegation.token.secret.key of the brokers",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "write a user, as in User:anna",
    ErrorCode.TOPIC_ALREADY_EXISTS: "use `ottla topic config` to change it, or --if-not-exists to ignore this",
    ErrorCode.INVALID_REPLICATION_FACTOR: "use at most as many replicas as there are brokers (`ottla cluster info`), or start more, as with `ottla up --brokers 3`",
    ErrorCode.INVALID_CONFIG: "docs/options.md and `ottla topic config NAME --all` list the options",
    ErrorCode.MESSAGE_TOO_LARGE: "raise it with `ottla topic config NAME --set max.message.bytes=…`",
    ErrorCode.REQUEST_TIMED_OUT: "look at the broker's log, then try again",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "look at the broker's log, then try again",
}


# The same for errors of the operating system about a file.
_OS_ADVICE = {
    errno.EACCES: "change its owner or its permissions, or name another place",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or write less",
    errno.ENOSPC: "free some space, then try again",
    errno.EROFS: "name a place that can be written",
}

_STANDARD_OUTPUT = "standard output"
_OTHER_LISTENER = (
    "name a file with security.protocol=SSL or SASL_SSL (--command-config FILE), or the broker's "
    "listener without TLS"
)
_BROKEN = (
    "a listener with TLS or SASL needs its options (--command-config FILE); "
    "`ottla doctor` looks for the cause"
)
_NUMBER_OF_ERROR = re.compile(r"\[Errno -?[0-9]+\] ")
_LONG_WORD = re.compile(r"(\S{100})\S{300,}(\S{20})")
_NO_TOPIC = ErrorCode.INVALID_TOPIC_EXCEPTION


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        result = root.main(arguments, prog_name="ottla", standalone_mode=False)
    except click.ClickException as error:
        vars(error)["message"] = shortened(error.message)
        try:
            error.show()
        except OSError:
            _silence(sys.stderr)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        # click converts Ctrl-C to Abort, which it also raises if the user does not confirm.
        is_interrupted = isinstance(error.__cause__ or error, KeyboardInterrupt)
        return _fail("interrupted before it was complete", 130 if is_interrupted else 1)
    except SystemExit:
        # click raises SystemExit after completion, and when the reader of a pipe has ended. Both
        # are fine.
        return 0
    except (OttlaError, OSError) as error:
        return _fail(explain(error))
    return result if isinstance(result, int) else 0


def explain(error: Exception) -> str:
    """Return the message for an error, with its remedy."""
    text = _NUMBER_OF_ERROR.sub("", str(error)).rstrip(".")
    if isinstance(error, NoBroker):
        remedy = _OTHER_LISTENER if error.is_tls else "name the broker's port with --bootstrap"
        return f"{text}: {remedy}"
    if isinstance(error, NotReachable):
        if isinstance(error.__cause__, ConnectionResetError):
            return f"{text}: {_BROKEN}"
        return f"{text}: start a broker with `ottla up`, or name another with --bootstrap HOST:PORT"
    if isinstance(error, TimedOut):
        return f"{text}: look at the broker's log, or name another with --bootstrap HOST:PORT"
    if isinstance(error, ApiError) and error.code in _ADVICE:
        return f"{text}: {_ADVICE[error.code]}"
    # Brokers give a reason themselves, but not in responses without a field for it.
    if isinstance(error, ApiError) and error.message == _NO_TOPIC.message:
        return f"{text}: use 1 to 249 ASCII letters, digits, '.', '_' and '-'"
    if isinstance(error, OSError) and error.filename is not None:
        advice = _OS_ADVICE.get(error.errno or 0)
        if error.filename == _STANDARD_OUTPUT:
            remedy = advice or "redirect it to another file"
            return f"cannot write to standard output: {error.strerror}: {remedy}"
        return f"{error.filename}: {error.strerror}" + (f": {advice}" if advice else "")
    if isinstance(error, OSError) and error.strerror is not None:
        return error.strerror
    return text


def shortened(text: str) -> str:
    """Return a message without the middle of the long words that it quotes."""
    return _LONG_WORD.sub(r"\1…\2", text)


def main() -> None:
    """Entry point of the `ottla` script."""
    _open_standard_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        stream = _with_named_errors(sys.stdout)
        # The stream that a script of Kafka replaces by its own must be the original one.
        for name in ("stdout", "__stdout__"):
            setattr(sys, name, stream)
    code = run()
    if len(sys.argv) == 1 and sys.stdout.isatty() and sys.stderr.isatty():
        load("ottla.tools.shell.offer", "offer_completion")()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
    except OSError as error:
        _silence(sys.stdout)
        code = code or _fail(explain(error))
    # At exit Python collects garbage twice; without objects to visit, that takes no time.
    gc.freeze()
    sys.exit(code)


class _StandardOutput(io.FileIO):
    """Standard output, whose errors name it as errors of files name their file."""

    def write(self, data: Any, /) -> int:
        """Write bytes."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = _STANDARD_OUTPUT
            raise


def _with_named_errors(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(_StandardOutput(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        # The name of a file may have bytes that are not UTF-8.
        errors="surrogateescape",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _open_standard_streams() -> None:
    """Open the standard streams that are closed as /dev/null.

    A connection would get their numbers, and the output with it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


def _fail(sentence: str, code: int = 1) -> int:
    try:
        click.echo(f"ottla: {shortened(sentence)}", err=True)
    except OSError:
        _silence(sys.stderr)
    return code


def _silence(stream: TextIO) -> None:
    """Redirect a stream, so that Python's flush at exit does not fail on a broken pipe or a full
    disk.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
