"""Write the public names of Kafka Streams' API, as printed by `javap`, to kafka-streams.txt.

`python -m tests.streams.api.record JAR...` needs the jars kafka-streams, kafka-streams-test-utils
and kafka-clients, and a JDK. A line is a class with its methods and constants, except the methods
of all objects and those that only Kafka's own code calls.
"""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

NAMES = Path(__file__).with_name("kafka-streams.txt")
_PACKAGE = "org.apache.kafka.streams."
_SERDES = "org.apache.kafka.common.serialization.Serdes"
_CLASS = re.compile(r"public .*?(?:class|interface|enum) ([\w.$]+)")
_METHOD = re.compile(r"  public (?:.*\s)?(\w+)\(")
_CONSTANT = re.compile(r"  public static final .*?(\w+);")
_OF_ALL = {"equals", "hashCode", "toString", "valueOf", "values", "compareTo"}
# Classes that users do not use: for assignments, configuration, and adapters of stores.
_INTERNAL = re.compile(r"internals|assignment|\$\d+$|Facade|Delegating|InternalConfig|MockTime")


def _classes(jar: Path) -> Iterator[str]:
    with zipfile.ZipFile(jar) as file:
        for name in sorted(file.namelist()):
            replaced = name.removesuffix(".class").replace("/", ".")
            is_public = replaced.startswith(_PACKAGE) or replaced == _SERDES
            if name.endswith(".class") and is_public and not _INTERNAL.search(replaced):
                yield replaced


def read(jars: list[Path]) -> dict[str, list[str]]:
    """Return the public names of each public class."""
    classes = [name for jar in jars for name in _classes(jar)]
    path = ":".join(map(str, jars))
    command = ["javap", "-public", "-cp", path, *classes]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    entries: dict[str, list[str]] = {}
    names: list[str] = []
    for line in done.stdout.splitlines():
        kind = _CLASS.match(line)
        if kind or line.startswith(("class", "interface", "abstract", "final", "enum", "Compiled")):
            names = entries.setdefault(kind.group(1).removeprefix(_PACKAGE), []) if kind else []
            continue
        member = _METHOD.match(line) or _CONSTANT.match(line)
        if member and member.group(1) not in (*_OF_ALL, *names) and "$" not in member.group(1):
            names.append(member.group(1))
    return entries


def main(jars: list[str]) -> None:
    """Write the names of the jars to the file."""
    records = read([Path(jar) for jar in jars])
    lines = (f"{kind}: {' '.join(sorted(names))}" for kind, names in sorted(records.items()))
    NAMES.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
