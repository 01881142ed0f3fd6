"""The broker side uses clock, files and randomness only through the ports; some calls are
forbidden.
"""

import ast
import re
from collections.abc import Iterator

from tests.law import source

# Banned calls, the modules that may make them, and the alternatives.
EVERYWHERE = {
    "asyncio.wait_for": "asyncio.timeout: wait_for loses a cancellation on Python 3.11",
    "print": "tools/output.py",
    "eval": "nothing: values come from tables",
    "pickle.loads": "nothing: bytes from outside are never unpickled",
}
BROKER_WORLD = {
    "time.time": "the Clock port (base/clock.py)",
    "time.time_ns": "the Clock port (base/clock.py)",
    "time.monotonic": "the Clock port (base/clock.py)",
    "time.perf_counter": "the Clock port (base/clock.py)",
    "time.sleep": "the Clock port (base/clock.py)",
    "asyncio.sleep": "the Clock port's sleep (base/clock.py)",
    "datetime.now": "the Clock port (base/clock.py)",
    "datetime.datetime.now": "the Clock port (base/clock.py)",
    "open": "the Disk port (base/files.py)",
    "os.urandom": "the Random port (base/rng.py)",
    "uuid.uuid4": "the Random port (base/rng.py, base/uuids.py)",
    "asyncio.to_thread": "FileSystem.in_background (base/files.py)",
    "threading.Thread": "nothing: one loop a broker",
}
BROKER_MODULES = {
    "random": "the Random port (base/rng.py)",
    "socket": "the Net port (net/port.py)",
    "threading": "nothing: one loop a broker",
    "secrets": "the Random port (base/rng.py)",
    "shutil": "the Disk port (base/files.py)",
    "tempfile": "the Disk port (base/files.py)",
}
BROKER_PACKAGES = (
    "base",
    "wire",
    "net",
    "storage",
    "cluster",
    "replication",
    "controller",
    "coordinators",
    "server",
)
# Modules of Python that only their door imports: it has deadlines, sizes and redirects for all.
ONE_IMPORTER = {
    "http.client": "ottla/net/web_requests.py",
    "urllib.request": "ottla/net/web_requests.py",
}
_FILE_CALLS = ("os.open", "os.read", "os.write", "os.pread", "os.rename", "os.replace", "os.remove",
               "os.makedirs", "os.mkdir", "os.listdir", "os.fsync", "os.stat", "os.path.exists")  # fmt: skip


# The ports themselves: they access the machine.
PORTS = (
    *("ottla/base/clock.py", "ottla/base/rng.py", "ottla/base/files.py", "ottla/net/listener.py"),
    "ottla/net/admission/hellos.py",
    *(
        f"ottla/base/platform/{name}.py"
        for name in (
            "descriptors",
            "disk",
            "mounts",
            "page_cache",
            "private_files",
            "processes",
            "sockets",
        )
    ),
)


def _broker_world() -> Iterator[source.Source]:
    for item in source.sources():
        if item.package in BROKER_PACKAGES and item.path not in PORTS:
            yield item


def _calls(item: source.Source) -> Iterator[tuple[str, int]]:
    for node in source.nodes(item.tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno


def test_forbidden_calls_are_not_used() -> None:
    """Forbidden calls are used in no package."""
    offences = {
        f"{item.path}:{name}": f"line {line}: use {EVERYWHERE[name]}"
        for item in source.sources()
        for name, line in _calls(item)
        if name in EVERYWHERE
    }
    assert source.complaints("calls", offences, "Replace these calls:") == []


def test_broker_side_uses_clock_disk_and_randomness_through_ports() -> None:
    """Time, files and randomness come from the ports; otherwise a simulation cannot control them."""
    banned = BROKER_WORLD | dict.fromkeys(_FILE_CALLS, "the Disk port (base/files.py)")
    offences = {
        f"{item.path}:{name}": f"line {line}: use {banned[name]}"
        for item in _broker_world()
        for name, line in _calls(item)
        if name in banned
    }
    assert source.complaints("ports", offences, "Go through the port:") == []


def test_broker_side_imports_no_module_that_bypasses_a_port() -> None:
    """An import of random or socket would bypass a port."""
    offences = {}
    for item in _broker_world():
        for node in source.nodes(item.tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                if name in BROKER_MODULES:
                    offences[f"{item.path}:{name}"] = f"use {BROKER_MODULES[name]}"
    assert source.complaints("modules", offences, "Go through the port:") == []


_CLOCK = re.compile(r"""setattr\((['"]time\.|(\w+\.)*time,)""")


def test_no_test_replaces_the_clock_of_the_process() -> None:
    """Event loops of other threads use it: one that sets a timer then may sleep for hours."""
    offences = {
        f"{item.path}:{number}": "give the module that reads the time a `time` of its own"
        for item in source.sources("tests")
        for number, line in enumerate(item.text.splitlines(), 1)
        if _CLOCK.search(line)
    }
    assert source.complaints("clocks", offences, "Replace less:") == []


def test_http_requests_leave_by_one_door() -> None:
    """Each client of its own would need a deadline, a size and a rule for redirects again."""
    offences = {}
    for item in source.sources():
        for node in source.nodes(item.tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module}.{a.name}" for a in node.names)]
            for name in names:
                if ONE_IMPORTER.get(name, item.path) != item.path:
                    offences[f"{item.path}:{name}"] = f"use {ONE_IMPORTER[name]}"
    assert source.complaints("one-importer", offences, "Go through the door:") == []


def test_imports_are_at_the_top_of_a_module() -> None:
    """An import inside a function hides a dependency; the listed ones are optional or save start-up
    time.
    """
    offences = {}
    for item in source.sources():
        for function in item.functions():
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    offences[f"{item.path}:{function.name}"] = ast.unparse(node)
    assert source.complaints("inner-imports", offences, "Move these imports to the top:") == []


def test_only_supervisors_catch_everything() -> None:
    """A bug must fail its unit loudly; only supervisors have `except Exception`."""
    offences = {}
    for item in source.sources():
        for node in source.nodes(item.tree):
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = ast.unparse(node.type) if node.type else "everything"
            last = node.body[-1]
            if isinstance(last, ast.Raise) and last.exc is None:
                continue  # It cleans up and raises the error again.
            if caught in ("Exception", "BaseException", "everything"):
                offences[item.path] = f"line {node.lineno}: catches {caught}"
    assert source.complaints("broad-excepts", offences, "Catch what you mean:") == []


def test_code_has_no_markers_of_open_work() -> None:
    """A gap is an issue or a `Not done:` line, never a marker in the code."""
    arguments = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error")
    offences = {
        f"{path}:{number}": word
        for folder in ("ottla", source.SCRIPTS, "tests", "bench", "demo")
        for path, text in source.texts(folder).items()
        for number, line in enumerate(text.splitlines(), 1)
        for word in arguments
        if word in line
    }
    assert source.complaints("markers", offences, "Do it, or write it down where users look:") == []
