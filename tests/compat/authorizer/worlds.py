"""Access control lists and questions about them, from a seed; and the decisions of both sides.

Run `python -m tests.compat.authorizer.worlds` to record the decisions of Apache Kafka again: its
StandardAuthorizer runs in a JVM without a broker.
"""

import hashlib
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from ottla.security.acls import (
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from ottla.security.authorization import AccessLists, Requester, Rules
from ottla.security.principal import Principal
from tests.compat import java

T = TypeVar("T")

SOURCE = Path(__file__).with_name("Decisions.java")
RECORDED = Path(__file__).with_name("decisions.txt")
RECORDED_SEED, RECORDED_COUNT = 1, 5_000
_QUESTIONS_OF_A_WORLD = 10
_ENTRIES_MAX = 8
_LINE = 100
_NAMES = ("a", "ab", "abc", "b", "abd", "*", "kafka-cluster", "a-very-long-name")
_TYPES = (
    *(ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER),
    *(ResourceType.TRANSACTIONAL_ID, ResourceType.DELEGATION_TOKEN),
)
_PATTERNS = (PatternType.LITERAL, PatternType.LITERAL, PatternType.PREFIXED)
_PRINCIPALS = ("User:ann", "User:ben", "User:*", "Group:ann", "Group:*", "User:a")
_HOSTS = ("10.0.0.1", "10.0.0.2", "*", "0:0:0:0:0:0:0:1")
_CLIENTS = (
    ("User", "ann"),
    ("User", "ben"),
    ("User", "root"),
    ("Group", "ann"),
    ("User", "ANONYMOUS"),
)
_OPERATIONS = tuple(operation for operation in AclOperation if operation >= AclOperation.ALL)
_ASKED = tuple(operation for operation in AclOperation if operation > AclOperation.ALL)
_SUPER_USERS = ("", "User:root", "User:root;Group:ann")


class Question(NamedTuple):
    """May a client do an operation to a resource?"""

    client: tuple[str, str]
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str


class World(NamedTuple):
    """Rules, entries of access control lists, and questions."""

    allows_if_no_acl: bool
    super_users: str
    entries: tuple[tuple[ResourcePattern, AccessControlEntry], ...]
    questions: tuple[Question, ...]


def worlds(seed: int, count: int) -> Iterator[World]:
    """Yield worlds with `count` questions; the same for a seed in every version of Python."""
    source = random.Random(seed)

    def one_of(values: Sequence[T]) -> T:
        return values[int(source.random() * len(values))]

    for _ in range(count // _QUESTIONS_OF_A_WORLD):
        drawn = [
            (
                ResourcePattern(one_of(_TYPES), one_of(_NAMES), one_of(_PATTERNS)),
                AccessControlEntry(
                    one_of(_PRINCIPALS),
                    one_of(_HOSTS),
                    one_of(_OPERATIONS),
                    one_of((PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY)),
                ),
            )
            for _ in range(int(source.random() * _ENTRIES_MAX))
        ]
        # An entry is in a list once.
        entries = tuple(dict.fromkeys(drawn))
        questions = []
        for _ in range(_QUESTIONS_OF_A_WORLD):
            # Most questions concern an entry: others are decided by the rules alone.
            pattern = one_of(entries)[0] if entries and source.random() < 0.8 else None
            ending = one_of(("", "c", "-x"))
            if pattern is not None and pattern.name == "*":
                # A test shows the difference of longer names.
                ending = ""
            questions.append(
                Question(
                    one_of(_CLIENTS),
                    one_of([host for host in _HOSTS if host != "*"]),
                    one_of(_ASKED),
                    one_of(_TYPES) if pattern is None else pattern.resource_type,
                    one_of(_NAMES) if pattern is None else pattern.name + ending,
                )
            )
        yield World(source.random() < 0.3, one_of(_SUPER_USERS), entries, tuple(questions))


def text_of(some: Sequence[World]) -> str:
    """Return worlds in the form that the program in Java reads."""
    lines: list[tuple[str, ...]] = []
    for world in some:
        lines.append(("rules", str(world.allows_if_no_acl).lower(), world.super_users))
        lines += [
            (
                *("entry", pattern.resource_type.name, pattern.name, pattern.pattern_type.name),
                *(
                    entry.principal,
                    entry.host or "*",
                    entry.operation.name,
                    entry.permission_type.name,
                ),
            )
            for pattern, entry in world.entries
        ]
        lines += [
            (
                "question",
                *item.client,
                item.host,
                item.operation.name,
                item.resource_type.name,
                item.name,
            )
            for item in world.questions
        ]
    return "".join("\t".join(line) + "\n" for line in lines)


def digest(some: Sequence[World]) -> str:
    """Return a digest, by which a recording knows its worlds."""
    return hashlib.sha256(text_of(some).encode()).hexdigest()


def of_ottla(some: Sequence[World]) -> str:
    """Return a digit for each question: 1 if the operation is allowed."""
    digits = []
    for world in some:
        lists = AccessLists()
        for pattern, entry in world.entries:
            lists.replace(pattern, {*lists.entries(pattern), entry})
        rules = Rules.parse(world.super_users, allows_if_no_acl=world.allows_if_no_acl)
        digits += [
            str(
                int(
                    lists.allow(
                        rules,
                        Requester(Principal(*item.client), item.host),
                        item.operation,
                        item.resource_type,
                        item.name,
                    )
                )
            )
            for item in world.questions
        ]
    return "".join(digits)


def of_kafka(some: Sequence[World]) -> str:
    """Return the same from the StandardAuthorizer of Apache Kafka 4.3.0."""
    class_path = java.kafka_class_path("4.3.0")
    classes = java.compiled(SOURCE, class_path)
    command = java.plain_command(f"{classes}:{class_path}", SOURCE.stem)
    done = subprocess.run(command, input=text_of(some), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


def differences(some: Sequence[World], expected: str) -> list[str]:
    """Return the questions that Ottla decides otherwise, with their worlds."""
    actual = of_ottla(some)
    assert len(actual) == len(expected)
    return [
        f"{text_of([some[at // _QUESTIONS_OF_A_WORLD]])}question {at % _QUESTIONS_OF_A_WORLD}: {there}"
        for at, (here, there) in enumerate(zip(actual, expected, strict=True))
        if here != there
    ]


def recorded() -> tuple[str, str]:
    """Return the digest of the recorded worlds, and the decisions of Apache Kafka."""
    first, *rest = RECORDED.read_text().splitlines()
    return first, "".join(rest)


def main() -> None:
    """Record the decisions of Apache Kafka."""
    some = list(worlds(RECORDED_SEED, RECORDED_COUNT))
    digits = of_kafka(some)
    rows = [digits[at : at + _LINE] for at in range(0, len(digits), _LINE)]
    RECORDED.write_text("\n".join((digest(some), *rows)) + "\n")


if __name__ == "__main__":
    main()
