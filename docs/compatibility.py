"""Computes docs/compatibility.md, the foreign clients that run with Ottla, from the tests.

No row is written by hand. A row is a file below tests/compat, its subject the file's first
sentence; a test counts for a client if its own code, its fixtures, or what they call, uses that
client. Versions are those that the tests install or fetch.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "tests/compat"

# Package that is imported, or program that is run, and the client's name.
_PACKAGES = {
    "confluent_kafka": "librdkafka",
    "kafka": "kafka-python",
    "aiokafka": "aiokafka",
}
_JAVA = f"{FOLDER.replace('/', '.')}.java"
_JAVA_NAME = "Apache Kafka (Java)"
# It names the programs that tests need, and runs none of them.
_NEEDS = ("tests.runs", "needs")
_PROGRAMS = {"kcat": "kcat"}
CLIENTS = (_JAVA_NAME, "librdkafka", "kcat", "kafka-python", "aiokafka")
_PINNED = {"confluent-kafka": "librdkafka", "kafka-python": "kafka-python", "aiokafka": "aiokafka"}
# Each was found with these tests, and is the same with Apache Kafka.
FAULTS = (
    "**librdkafka 2.16: `send_offsets_to_transaction` waits too long after all brokers were down.** "
    "A client that has lost its last connection bootstraps again, and removes the brokers that it "
    "knew (KIP-1102). It also removes brokers that the metadata does not list any more. A producer "
    "still takes the removed broker for the coordinator of its group. It looks for another one "
    "when a connection to any broker is opened or closed "
    "([issue 5511](https://github.com/confluentinc/librdkafka/issues/5511)). That may take minutes, "
    "longer than the time-out of the call. With Apache Kafka 3.9.2 four of six producers waited, "
    "with 4.4.0 all six. Set `connections.max.idle.ms` to 3000 in transactional "
    "producers, as Ottla's own producers do.",
    "**librdkafka 2.16: an abort can fail with the fatal error INVALID_TXN_STATE.** "
    "The coordinator was killed before it stored the first partition of the transaction. "
    "Its successor knows only the transaction before. If that one was committed, an abort must fail: "
    "the client may have lost the response to the commit. Java 4 has an epoch for each transaction "
    "instead (KIP-890). No record of the transaction is visible: create a new producer.",
)
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_PROGRAM_FILES = re.compile(r"[\w-]+\.(?:py|java)")


class Module:
    """A test module and its definitions and imports."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.defined: dict[str, ast.AST] = {}
        # Local name to module, and to the name in it where there is one.
        self.imported: dict[str, tuple[str, str]] = {}
        for node in self.tree.body:
            self._note(node)

    def _note(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.defined[node.name] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.defined[target.id] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            self.defined[node.target.id] = node
        elif isinstance(node, ast.Import):
            for alias in node.names:
                self.imported[alias.asname or alias.name.split(".")[0]] = (alias.name, "")
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self.imported[alias.asname or alias.name] = (node.module or "", alias.name)

    @property
    def subject(self) -> str:
        """The first sentence of its docstring, without the full stop."""
        text = " ".join((ast.get_docstring(self.tree) or "").split("\n\n")[0].split())
        return text.split(". ")[0].rstrip(".")

    def tests(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Return the test functions in their order."""
        for node in self.tree.body:
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and node.name.startswith("test_"):
                yield node  # type: ignore[misc]


@cache
def load(path: Path) -> Module:
    """Return a module, read once."""
    return Module(path)


def test_modules() -> list[Module]:
    """Return the test modules below the folder, by name; recorded responses are no clients."""
    return [load(path) for path in sorted((ROOT / FOLDER).glob("test_*.py"))]


def clients_of(
    module: Module, node: ast.AST, seen: set[tuple[Path, str]] | None = None
) -> set[str]:
    """Return the clients that a piece of code uses, itself or through the definitions it uses."""
    seen = set() if seen is None else seen
    found: set[str] = set()
    for name in _names(node):
        if (module.path, name) in seen:
            continue
        seen.add((module.path, name))
        if name in module.imported:
            found |= _of_import(*module.imported[name], seen)
        elif name in module.defined:
            found |= clients_of(module, module.defined[name], seen)
        else:
            found |= _of_fixture(module, name, seen)
    for text in _texts(node):
        if text in _PROGRAMS:
            found.add(_PROGRAMS[text])
        elif _PROGRAM_FILES.fullmatch(text):
            found |= _of_file(module.path.parent / text, seen)
    return found


def _names(node: ast.AST) -> Iterator[str]:
    """Return the names in a piece of code: of values, and of the fixtures that it is given."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.arg):
            yield each.arg


def _texts(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def _of_import(source: str, name: str, seen: set[tuple[Path, str]]) -> set[str]:
    package = source.split(".")[0]
    if package in _PACKAGES:
        return {_PACKAGES[package]}
    if (source, name) == _NEEDS:
        return set()
    if _JAVA in (source, f"{source}.{name}"):
        return {_JAVA_NAME}
    whole = ROOT / source.replace(".", "/") / f"{name}.py"
    if package == "tests" and whole.exists():
        # The whole module counts, not only the parts that are used.
        return clients_of(load(whole), load(whole).tree, seen)
    path = ROOT / f"{source.replace('.', '/')}.py"
    if package != "tests" or not path.exists():
        return set()
    target = load(path)
    node = target.defined.get(name, ast.Module([], []))
    return clients_of(target, node, seen)


def _of_fixture(module: Module, name: str, seen: set[tuple[Path, str]]) -> set[str]:
    path = module.path.parent / "conftest.py"
    if not path.exists():
        return set()
    shared = load(path)
    node = shared.defined.get(name)
    return set() if node is None or shared is module else clients_of(shared, node, seen)


def _of_file(path: Path, seen: set[tuple[Path, str]]) -> set[str]:
    """Return the clients of a program that a test starts."""
    if path.suffix == ".java" and path.exists():
        return {_JAVA_NAME}
    if path.suffix != ".py" or not path.exists() or (path, "") in seen:
        return set()
    seen.add((path, ""))
    program = load(path)
    return clients_of(program, program.tree, seen)


def versions() -> dict[str, str]:
    """Return the versions that are run, by client."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = {
        client: f"{package} {number}"
        for package, client in _PINNED.items()
        for number in re.findall(rf"^{package}==(\S+)", lock, re.MULTILINE)
    }
    java: set[str] = set()
    for path in (ROOT / FOLDER).glob("*.py"):
        module = load(path)
        if path.stem == "java" or any(_JAVA in ".".join(each) for each in module.imported.values()):
            java |= {text for text in _texts(module.tree) if _VERSION.fullmatch(text)}
    found[_JAVA_NAME] = ", ".join(sorted(java))
    found["kcat"] = "as installed"
    return found


def rows() -> Iterator[tuple[Module, Counter[str]]]:
    """Return the test modules that run foreign clients, with the number of tests by client."""
    for module in test_modules():
        counts: Counter[str] = Counter()
        for test in module.tests():
            counts.update(clients_of(module, test))
        if counts:
            yield module, counts


def matrix() -> tuple[list[str], list[list[str]]]:
    """Return heads and lines of the table: subjects by clients, with numbers of tests."""
    known = versions()
    heads = ["Subject", *(f"{client} ({known[client]})" for client in CLIENTS)]
    lines = [
        [
            f"[{module.subject}](../{module.path.relative_to(ROOT).as_posix()})",
            *(str(counts[client] or "") for client in CLIENTS),
        ]
        for module, counts in rows()
    ]
    return heads, lines


def listing() -> Iterator[str]:
    """Return a section for each file: the expectation of each test, and its clients."""
    for module, _ in rows():
        lines = [f"### {module.subject}", ""]
        for test in module.tests():
            sentence = " ".join((ast.get_docstring(test) or "").split("\n\n")[0].split())
            clients = sorted(clients_of(module, test), key=CLIENTS.index)
            lines.append(f"* {sentence} *{', '.join(clients) or 'our own client'}* (`{test.name}`)")
        yield "\n".join(lines)
