"""Recorded sessions of Apache Kafka's command-line tools: commands, what they print, exit codes.

A transcript is a text file. A line starts with one of these marks; the commands share one cluster:

    $ kafka-topics --bootstrap-server $B --list     a command; see the words below
    < a line                                        its standard input
    << a\\rb\\xff                                    bytes that follow these lines, with escapes
    > a line                                        its standard output
    ! a line                                        its standard error
    = 1                                             its exit code, unless it is 0
    + plan.json {"version": 1}                      a line of a file below $D, written first
    broker super.users=User:ANONYMOUS               an option of the broker
    kafka early.start.listeners=CONTROLLER          an option of Apache Kafka's broker only
    version 3.9.2                                   the tools of the next commands; else 4.3.0
    opts -Dname=value                               KAFKA_OPTS for the next commands
    @ znodes /a /a/b                                a preparation (`actions`)
    # a comment

In commands and files, $B is the cluster, $C a second one, $D a folder, $F the folder `files`, $J
the broker's JMX URL, $Q the address of its KRaft controller, and $L the address of its listener
with SASL, which exists if it is used. $P is the address of its listener with SASL and TLS: its
certificate is $D/server.crt, with the key in $D/server.pem, and $D/other.crt is another's. $Z is a
ZooKeeper whose users are `kafka` and `other`, with the password `secret`. $T1, $T2, … are the ids
of the delegation tokens that earlier commands have created, and $H1, $H2, … their HMACs. The broker
has the version of the first command's tools.

`$N kafka-…` compares numbers only by their number of decimals: the output contains measurements.
`$W kafka-…` prints an error in the broker's own words: against Ottla, the rest of the line is
compared. `$S kafka-…` compares sorted lines: Apache Kafka prints them in the order of a hash table.
`$U kafka-…` compares sorted words: Apache Kafka prints options in the order of a hash table. `$K
kafka-…` is only recorded: Ottla's broker lacks the feature, and some of our scripts lack it, too.
`$A kafka-…` is only run against Apache Kafka: our script has the feature, Ottla's broker lacks it,
or it has other versions of APIs. `$O kafka-…` is only run by our scripts: an old flag that the
recorded version has removed, or an extension. `$E kafka-…` ends only by a signal: the recorder
sends it once cluster $C has received as many records as $B has; our script ends with `--until-end`.
Texts that differ in each run (addresses, ids, times) are replaced by words.
"""

import itertools
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.certificates import self_signed
from tests.compat import java
from tests.compat.scripts.actions import perform

FOLDER = Path(__file__).parent / "transcripts"
FILES = Path(__file__).parent / "files"
MODERN = "4.3.0"
# The words for listeners with SASL.
PROTOCOLS = {"$L": "SASL_PLAINTEXT", "$P": "SASL_SSL"}
_COMMAND = re.compile(r"\$([NSOWUKEA]*) (.*)")
_BROKERS_WORDS = re.compile(r"^((?:Error[^:]*|[^:]*): ?).*")
# joptsimple's table of options, argparse4j's usage, and what follows them: sentences of Kafka's
# own.
_USAGE = re.compile(r"^(Option( \(\* = required\))?\s+Description|usage: |For usage see|Usage: )")
_STACK = re.compile(r"^(\s+at |Caused by: |\s+\.\.\. \d+ more|\s*Suppressed: )")
# argparse4j's error is below its usage, in lines of equal width.
_BELOW_USAGE = re.compile(r"[\w.-]+: +error: ")
# A stack trace's first line repeats the message behind the name of a Java class.
_EXCEPTION = re.compile(
    r"^(?:Exception in thread \S+ )?(?:[a-z]\w*\.)+[\w$.]*(?:Exception|Error)(?:: |$)"
)
_REPLACEMENTS = (
    (re.compile(r"(Cluster ID: )\S+"), r"\1ID"),
    (re.compile(r"(TopicId: |directory\.id=)[\w-]{22}"), r"\1ID"),
    (re.compile(r"^[\w-]{22}$", re.MULTILINE), "ID"),
    (re.compile(r"((?:Create|LogAppend)(?:Time|Timestamp): ?)\d{13}"), r"\1TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"), "DATE"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d(?![:\d])"), "DATE"),
    (re.compile(r'("timestamp":)\d{13}'), r"\1TIME"),
    (re.compile(r'("\w+Timestamp(?:Ms)?":)\d{13}'), r"\1TIME"),
    (re.compile(r'("topicId":)"[\w-]{22}"'), r'\1"ID"'),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r'"(?:/[^"/]+)+"'), '"DIR"'),
    # A broker's request as Java prints it.
    (re.compile(r"Request Request\(.*?\) needs \w+ permission\."), "Cluster authorization failed."),
    (re.compile(r"(ReassignmentId|reassignment id) \S+"), r"\1 ID"),
    # A latency in its shortest form: one in a hundred has few decimals.
    (re.compile(r"^(\d+\t\d+\.\d)\d*$", re.MULTILINE), r"\g<1>00000"),
)
_CREATED_TOKEN = re.compile(r"^Created delegation token with tokenId : (\S+)$", re.MULTILINE)
_WORDS = re.compile(r"[^\s,\[\]]+")
# The Java client recommends KIP-848; its console consumers leave groups with random names behind.
# SLF4J reports two loggers on the class path. ZooKeeper's shell reports its connection. A log has
# the reason of a failed handshake, and the error of a console consumer. A tool reads a plan in one
# form, prints the stack trace of the failure and continues with the other form.
_OF_THE_CLIENT = re.compile(
    r"SLF4J: |The consumer rebalance protocol \(KIP-848\)|console-consumer-\d+$"
    r"|Connecting to |WATCHER::|WatchedEvent state:SyncConnected type:None |WatchedEvent state:Sasl"
    r"|ERROR Connection to |ERROR Error processing message, terminating consumer process: "
    r"|ERROR Unknown error when running consumer: "
    r"|(?:com\.fasterxml\S+ )?Cannot deserialize value of type|Too many entries: |Numeric value \("
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
# The width of a number, and of a column with numbers, differs in each run.
_PADDED = re.compile(r"(\bN[N\d]*|\bN ms ago) +\t")


@dataclass(frozen=True, slots=True)
class Places:
    """The addresses and folders of one run; transcripts have words for them."""

    bootstrap: str
    folder: Path
    second: str = ""
    jmx_url: str = ""
    controller: str = ""
    authenticated: str = ""
    tokens: dict[str, str] = field(default_factory=dict)
    zookeeper: str = ""
    protected: str = ""

    def fill(self, text: str) -> str:
        """Return a text of a transcript with the places of this run."""
        for word, place in self._words():
            text = text.replace(word, place)
        return text

    def hide(self, text: str) -> str:
        """Return an output with words for the places of this run."""
        for word, place in self._words():
            text = text.replace(place, word) if place else text
        host, _, port = self.bootstrap.rpartition(":")
        text = text.replace(f"/{host}", "HOST").replace(f"{host}:{port}", "$B")
        text = text.replace(port, "PORT")
        controllers_port = self.controller.rpartition(":")[2]
        return text.replace(controllers_port, "CPORT") if controllers_port else text

    def remember_tokens(self, output: str) -> None:
        """Note the delegation token that a command has created."""
        for token_id in _CREATED_TOKEN.findall(output):
            (row,) = (line for line in output.splitlines() if line.startswith(f"{token_id} "))
            number = len(self.tokens) // 2 + 1
            self.tokens.update({f"$T{number}": token_id, f"$H{number}": row.split()[1]})

    def _words(self) -> tuple[tuple[str, str], ...]:
        return (
            *self.tokens.items(),
            ("$J", self.jmx_url),
            ("$Q", self.controller),
            ("$L", self.authenticated),
            ("$P", self.protected),
            ("$B", self.bootstrap),
            ("$C", self.second),
            ("$Z", self.zookeeper),
            ("$D", str(self.folder)),
            ("$F", str(FILES)),
        )


@dataclass(slots=True)
class Command:
    """One command of a transcript, with what it printed."""

    line: str
    marks: str
    text: str
    version: str = MODERN
    java_options: str = ""
    stdin: list[str] = field(default_factory=list)
    stdin_bytes: bytes = b""
    files: list[tuple[str, str]] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    out: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    code: int = 0

    @property
    def input(self) -> bytes:
        """The standard input."""
        return "".join(f"{line}\n" for line in self.stdin).encode() + self.stdin_bytes

    def command_line(self, places: Places) -> list[str]:
        """Return the command line for one run as a list."""
        return shlex.split(places.fill(self.text))

    def prepare(self, places: Places) -> None:
        """Write the files that the command reads, and do what precedes it."""
        for action in self.actions:
            perform(places.fill(action), places.bootstrap, places.zookeeper)
        contents: dict[str, list[str]] = {}
        for name, line in self.files:
            contents.setdefault(name, []).append(places.fill(line))
        for name, lines in contents.items():
            (places.folder / name).write_text("\n".join(lines) + "\n")


@dataclass(slots=True)
class Transcript:
    """The commands of a file, and its other lines by position."""

    path: Path
    lines: list[str]
    commands: list[Command]

    @property
    def version(self) -> str:
        """The version of the broker."""
        return self.commands[0].version

    def options(self, folder: Path, *marks: str) -> dict[str, str]:
        """Return the options of a broker from the lines with these marks; `folder` is $D."""
        lines = (line.replace("$D", str(folder)) for line in self.lines if line.startswith(marks))
        rows = (line.split(" ", 1) for line in lines)
        return {name: value for name, _, value in (row[1].partition("=") for row in rows)}

    def listeners(self, folder: Path) -> dict[str, str]:
        """Return the addresses of the listeners with SASL, by $L or $P, and write certificates."""
        words = [word for word in PROTOCOLS if self.uses(word)]
        if "$P" in words:
            self_signed(folder)
            self_signed(folder, name="other")
        return {word: f"127.0.0.1:{java.free_ports(1)[0]}" for word in words}

    def uses(self, word: str) -> bool:
        """Return True if a command or a file names this place."""
        return any(word in line for line in self.lines)


def read(path: Path) -> Transcript:
    """Read a transcript."""
    commands: list[Command] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    version, java_options, waiting = MODERN, "", []
    actions: list[str] = []
    for line in lines:
        mark, _, rest = line.partition(" ")
        found = _COMMAND.fullmatch(line)
        if found is not None:
            marks, text = found.groups()
            commands.append(
                Command(line, marks, text, version, java_options, files=waiting, actions=actions)
            )
            waiting, actions = [], []
        elif mark == "@":
            actions.append(rest)
        elif mark == "+":
            name, _, text = rest.partition(" ")
            waiting.append((name, text))
        elif mark == "version":
            version = rest
        elif mark == "opts":
            java_options = rest
        elif mark == "<<":
            commands[-1].stdin_bytes += (
                rest.encode("latin-1").decode("unicode_escape").encode("latin-1")
            )
        elif mark in "<>!" and mark:
            command = commands[-1]
            {"<": command.stdin, ">": command.out, "!": command.errors}[mark].append(rest)
        elif mark == "=":
            commands[-1].code = int(rest)
    for command in commands:
        command.out = clean(command.out)
        command.errors = clean(command.errors, command.out)
    return Transcript(path, lines, commands)


def write(transcript: Transcript) -> None:
    """Write a transcript with the results that its commands have now."""
    lines = [line for line in transcript.lines if line[:1] not in {">", "!", "="}]
    result: list[str] = []
    waiting = iter(transcript.commands)
    pending: Command | None = None
    for line in [*lines, ""]:
        # A command's input precedes its output.
        if pending is not None and not line.startswith("<"):
            result += [f"> {text}" for text in pending.out]
            result += [f"! {text}" for text in pending.errors]
            result += [f"= {pending.code}"] if pending.code else []
            pending = None
        if _COMMAND.fullmatch(line):
            pending = next(waiting)
        result.append(line)
    text = "\n".join(result).rstrip("\n") + "\n"
    transcript.path.write_text(text, encoding="utf-8")


def normalize(text: str, places: Places, marks: str = "", others: Sequence[str] = ()) -> list[str]:
    """Return the lines of an output, with words in place of what differs in each run."""
    text = places.hide(text)
    for pattern, word in _REPLACEMENTS:
        text = pattern.sub(word, text)
    lines = clean(text.replace("\r", "").split("\n"), others)
    if "N" in marks:
        lines = [_PADDED.sub(r"\1\t", _NUMBER.sub(_decimals, line)) for line in lines]
    if "U" in marks:
        lines = [" ".join(sorted(_WORDS.findall(line))) for line in lines]
    return sorted(lines) if "S" in marks else lines


def clean(lines: list[str], others: Sequence[str] = ()) -> list[str]:
    """Return an output without stack traces, tables of options and the Java client's notices.

    `others` are lines of the other stream, which a stack trace may repeat.
    """
    kept: list[str] = []
    for at, line in enumerate(lines):
        # Our scripts name their help where Apache Kafka's print it.
        if line.startswith("For the options: "):
            continue
        if _STACK.match(line) or _OF_THE_CLIENT.match(line):
            continue
        if _USAGE.match(line):
            kept += _error_below(lines[at:])
            break
        bare = _EXCEPTION.sub("", line)
        if bare == line or not any(bare in other for other in (*kept, *others)):
            kept.append(bare)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def _error_below(lines: list[str]) -> list[str]:
    """Return argparse4j's sentence as one line, without its suggestions; none if it is missing."""
    start = next((at for at, line in enumerate(lines) if _BELOW_USAGE.match(line)), len(lines))
    text = ""
    for line in itertools.takewhile(str.strip, lines[start:]):
        # A line may end within a name.
        text += line if not text or text.endswith("-") else f" {line}"
    return [" ".join(text.split())] if text else []


def _decimals(found: re.Match[str]) -> str:
    fraction = found.group(1) or ""
    # The shortest form of a double has any number of decimals.
    count = len(fraction) - 1
    return "N" if not fraction else f"N{count}" if count <= 4 else "N+"


def without_brokers_words(lines: list[str]) -> list[str]:
    """Return lines up to the first colon: an error of the broker follows it."""
    return [_BROKERS_WORDS.sub(r"\1", line) for line in lines]
