"""A real Prometheus that scrapes brokers of a test, and the lists of expressions that it evaluates.

Debian's package `prometheus`; its tests have the marker `needs("prometheus")`.
"""

import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import yaml

SCRAPE_INTERVAL = "500ms"
PATIENCE_SECONDS = 180.0
PAUSE_SECONDS = 0.05
_DATA_SECONDS = 60.0
_FOLDER = Path(__file__).parent / "dashboards"
_ADDRESS = re.compile(r'msg="Listening on" address=(\S+)')
_READY = "Server is ready to receive web requests"
# In Kubernetes, the kubelet and Strimzi's operator provide these.
_OF_KUBERNETES = re.compile(r"\b(?:container|kubelet|strimzi_certificate)_\w+")


class Expression(NamedTuple):
    """The title of a panel or the name of an alert, and its expression."""

    title: str
    text: str

    def with_variables(self, variables: Mapping[str, str]) -> "Expression":
        """Return the expression with a dashboard's variables replaced, as Grafana does."""
        text = self.text
        for name in sorted(variables, key=len, reverse=True):
            text = text.replace(f"${name}", variables[name])
        assert "$" not in text, text
        return Expression(self.title, text)


def expressions(name: str) -> list[Expression]:
    """Return the expressions of a list, without those on metrics of Kubernetes."""
    lines = (_FOLDER / name).read_text("utf-8").splitlines()
    result = [Expression(*line.split("\t")) for line in lines if not line.startswith("#")]
    return [each for each in result if not _OF_KUBERNETES.search(each.text)]


def names(name: str) -> list[Expression]:
    """Return an expression for each name of a list: its series of the job ottla with all labels."""
    lines = (_FOLDER / name).read_text("utf-8").splitlines()
    found = []
    for metric, *labels in (line.split() for line in lines if not line.startswith("#")):
        selectors = ['job="ottla"', *(f'{label}!=""' for label in labels)]
        found.append(Expression(metric, f"{metric}{{{','.join(selectors)}}}"))
    return found


class Prometheus:
    """A server with a configuration that can be replaced; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._config = folder / "prometheus.yml"
        self._data = folder / "data"
        self._process: subprocess.Popen[str]
        self._reader: threading.Thread
        self._url = ""

    def configure(self, config: Mapping[str, Any]) -> None:
        """Write the configuration; a running server applies it."""
        self._config.write_text(yaml.safe_dump(dict(config), sort_keys=False), "utf-8")
        if self._url:
            request = urllib.request.Request(f"{self._url}/-/reload", method="POST")
            urllib.request.urlopen(request, timeout=10).close()

    def __enter__(self) -> "Prometheus":
        """Start the server on a free port."""
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={self._config}",
                f"--storage.tsdb.path={self._data}",
                "--web.listen-address=127.0.0.1:0",
                "--web.enable-lifecycle",
                "--log.level=info",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        lines: list[str] = []
        # The two lines come in any order.
        while not (self._url and any(_READY in line for line in lines)):
            lines.append(self._process.stderr.readline())
            assert lines[-1], f"prometheus did not start: {''.join(lines)}"
            match = _ADDRESS.search(lines[-1])
            if match:
                self._url = f"http://{match[1]}"
        # A full pipe would stop it.
        self._reader = threading.Thread(target=self._process.stderr.read)
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server."""
        self._process.terminate()
        self._process.wait(20)
        self._reader.join()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the result of an expression: its series, each with labels and value."""
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(
                f"{self._url}/api/v1/query?{query}", timeout=20
            ) as response:
                data = json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        assert data["resultType"] == "vector", expression
        result: list[dict[str, Any]] = data["result"]
        return result

    def without_data(self, expressions: Sequence[Expression]) -> list[Expression]:
        """Return the expressions that have no result within a minute of scrapes.

        The series of a scrape that takes too long on a busy machine are missing until the next one.
        """
        deadline, pause = time.monotonic() + _DATA_SECONDS, threading.Event()
        missing = list(expressions)
        while missing := [expression for expression in missing if not self.query(expression.text)]:
            if time.monotonic() > deadline:
                break
            pause.wait(PAUSE_SECONDS)
        return missing

    def wait_until(self, is_true: Callable[[], bool], what: str) -> None:
        """Return when a condition is true; scrapes take place while it waits."""
        deadline, pause = time.monotonic() + PATIENCE_SECONDS, threading.Event()
        while not is_true():
            assert time.monotonic() < deadline, what
            pause.wait(PAUSE_SECONDS)

    def wait_for(self, expression: Expression) -> None:
        """Return when an expression has a result."""
        self.wait_until(lambda: bool(self.query(expression.text)), f"no result: {expression.title}")

    def wait_for_silence(self, rules: Sequence[Expression]) -> None:
        """Return when no alert has a result."""
        firing: list[str] = []

        def is_silent() -> bool:
            firing[:] = [rule.title for rule in rules if self.query(rule.text)]
            return not firing

        deadline, pause = time.monotonic() + PATIENCE_SECONDS, threading.Event()
        while not is_silent():
            assert time.monotonic() < deadline, f"alerts still fire: {firing}"
            pause.wait(PAUSE_SECONDS)


def alerts_of(text: str) -> Iterator[Expression]:
    """Yield the alerts of a file of rules."""
    for group in yaml.safe_load(text)["groups"]:
        for rule in group["rules"]:
            yield Expression(rule["alert"], rule["expr"])
