"""`kafka-jmx` (org.apache.kafka.tools.JmxTool): print attributes of beans, once or at intervals."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ottla.base.errors import OttlaError
from ottla.operations.json_documents import compact
from ottla.tools.broker.monitoring.beans import Attributes, BeanError, BeanReader
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import Flag, Options, Spec, integer
from ottla_scripts.jmx.date_format import DateFormat
from ottla_scripts.jmx.reader import connect, wait_until
from ottla_scripts.printing import (
    as_json,
    err,
    flush_or_end,
    java_double,
    java_list,
    out,
)

SPEC = Spec(
    "Dump JMX values to standard output.",
    {
        "object-name": Flag(
            "A bean, or a pattern with * and ?; may be repeated; default: all.", "name"
        ),
        "attributes": Flag("The attributes, as in Count,Value; default: all.", "name"),
        "reporting-interval": Flag(
            "Milliseconds between two reports; -1: one report.", "ms", integer, default=2000
        ),
        "one-time": Flag("Report once.", "one-time", is_optional=True),
        "date-format": Flag("The form of the time (java.text.SimpleDateFormat).", "format"),
        "jmx-url": Flag(
            "http://HOST:PORT/jmx of the broker's metrics.listener; a URL of Java's form is read as "
            "the HTTP port of its host and port.",
            "service-url",
            default="service:jmx:rmi:///jndi/rmi://:9999/jmxrmi",
        ),
        "report-format": Flag(
            "original, properties, csv or tsv.", "report-format", default="original"
        ),
        "jmx-auth-prop": Flag("username=password of a proxy before the port.", "jmx-auth-prop"),
        "jmx-ssl-enable": Flag("Use HTTPS.", "ssl-enable", default="false"),
        "wait": Flag("Wait until all beans of --object-name exist, for 10 s."),
    },
)
_ALL = "*:*"
_WILDCARD = re.compile(r"(?<!\\)[*?]")
# Columns of the report: bean and attribute.
Column = tuple[str, str]


def run(options: Options) -> int:
    """Print a report of the beans, and further ones until it is stopped."""
    try:
        _report(options)
    except UsageError:
        raise
    except (OttlaError, OSError) as error:
        err(str(error))
        return 1
    return 0


def _report(options: Options) -> None:
    interval_ms, queries = options["reporting-interval"], options.all("object-name")
    is_once = interval_ms < 0 or "one-time" in options
    included = _names(options["attributes"]) if "attributes" in options else None
    clock = _Clock(options["date-format"])
    form = options["report-format"].lower()
    if "wait" in options and not queries:
        raise UsageError("--wait needs --object-name: it waits for beans by their names")
    url = options["jmx-url"]
    is_tls = options["jmx-ssl-enable"].lower() == "true"
    credentials = _credentials(options["jmx-auth-prop"])
    # Standard error: system tests parse the output.
    err(f"Trying to connect to JMX url: {url}")
    reader = connect(url, is_tls=is_tls, credentials=credentials)
    selection = _Selection(reader, queries)
    selection.find(is_waiting="wait" in options)
    values = _chosen(selection.read_first(), included)
    expected = _expected_columns(selection, values, included)
    columns = sorted(values, key=lambda column: ":".join(column))
    printer = _Printer("json" if options.is_json else form, columns, expected)
    printer.print_header()
    while True:
        started = time.monotonic()
        values = _chosen(selection.read(), included)
        printer.print_values(clock.now(), values)
        flush_or_end()
        if is_once:
            return
        time.sleep(max(0.0, interval_ms / 1000 - (time.monotonic() - started)))


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _credentials(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    user, separator, password = text.partition("=")
    if not separator:
        raise UsageError("--jmx-auth-prop must be username=password")
    return user, password


class _Clock:
    """The column `time`: milliseconds since 1970, or in the form of --date-format."""

    def __init__(self, pattern: str | None) -> None:
        self._format = None if pattern is None else DateFormat(pattern)

    def now(self) -> str:
        if self._format is None:
            return str(time.time_ns() // 1_000_000)
        return self._format.format(datetime.now().astimezone())


class _Selection:
    """The beans that the queries matched at the beginning; later ones are not added."""

    def __init__(self, reader: BeanReader, queries: Sequence[str]) -> None:
        self._reader = reader
        self._queries = list(queries)
        self.has_patterns = any(map(_is_pattern, queries))
        self.names: set[str] = set()
        self._exact: list[str] = []

    def __str__(self) -> str:
        return java_list(self._queries or ["null"])

    def find(self, *, is_waiting: bool) -> None:
        """Look the beans up; OttlaError if `is_waiting` and some are still missing after 10 s."""
        for query in self._queries or [_ALL]:
            if _is_pattern(query):
                self.names.update(self._reader.names(query))
        exact = list(dict.fromkeys(query for query in self._queries if not _is_pattern(query)))

        def found() -> bool:
            self._exact = [name for query in exact for name in self._reader.names(query)]
            return len(self._exact) == len(exact)

        if is_waiting and not self.has_patterns:
            if not wait_until(found, lambda: err("Could not find all object names, retrying")):
                missing = [query for query in exact if not self._reader.names(query)]
                raise OttlaError(
                    "Could not find all requested object names after 10000 ms. "
                    f"Missing {','.join(missing)}"
                )
        else:
            found()
        self.names.update(self._exact)

    def read_first(self) -> dict[str, Attributes]:
        """Read the beans, and forget those without attributes, which Jolokia leaves out."""
        beans = self._read()
        self.names &= beans.keys()
        return {name: beans[name] for name in self.names}

    def read(self) -> dict[str, Attributes]:
        """Return the present attributes of the beans; OttlaError if one has disappeared."""
        beans = self._read()
        gone = sorted(self.names - beans.keys())
        if gone:
            raise OttlaError(f"The broker no longer has the bean {gone[0]}")
        return {name: beans[name] for name in self.names}

    def _read(self) -> dict[str, Attributes]:
        beans: dict[str, Attributes] = {}
        try:
            for query in self._queries or [_ALL]:
                if _is_pattern(query) and self.names:
                    beans |= self._reader.read(query)
            beans |= {name: self._reader.read_one(name) for name in self._exact}
        except BeanError as error:
            if not error.is_missing:
                raise
        return beans


def _is_pattern(query: str) -> bool:
    return _WILDCARD.search(query) is not None


def _chosen(beans: Mapping[str, Attributes], included: Sequence[str] | None) -> dict[Column, Any]:
    return {
        (name, attribute): value
        for name, attributes in beans.items()
        for attribute, value in attributes.items()
        if included is None or attribute in included
    }


def _expected_columns(
    selection: _Selection, values: Mapping[Column, Any], included: Sequence[str] | None
) -> int:
    """Return how many columns JmxTool expects: it prints nothing if a report has another number."""
    expected = len(values)
    if included is not None and not selection.has_patterns:
        expected = len(selection.names) * len(included)
    if not expected:
        raise OttlaError(f"No matched attributes for the queried objects {selection}.")
    if expected != len(values):
        err(
            f"Nothing is printed: some of the beans lack an attribute of {','.join(included or ())}. "
            "Name the beans as a pattern (--object-name) to print those that have it."
        )
    return expected


class _Printer:
    """Prints reports; columns are in the order of their names."""

    def __init__(self, form: str, columns: Sequence[Column], expected: int) -> None:
        self._form = form if form in ("properties", "csv", "tsv", "json") else "original"
        self._columns = columns
        self._expected = expected

    def print_header(self) -> None:
        """Print the line of names, which only the original form has."""
        if self._form == "original" and len(self._columns) == self._expected:
            names = ["time", *map(":".join, self._columns)]
            out(",".join(f'"{name}"' for name in names))

    def print_values(self, now: str, values: Mapping[Column, Any]) -> None:
        """Print one report, unless attributes are missing."""
        if self._form == "json":
            beans: dict[str, dict[str, Any]] = {}
            for name, attribute in self._columns:
                beans.setdefault(name, {})[attribute] = values.get((name, attribute))
            as_json({"time": now, "beans": beans})
            return
        if len(values) != self._expected:
            return
        rows = [("time", now)]
        rows += [(":".join(column), _text(values.get(column))) for column in self._columns]
        if self._form == "original":
            # JmxTool leaves out values that are null.
            missing = {":".join(column) for column in self._columns if values.get(column) is None}
            out(",".join(text for name, text in rows if name not in missing))
            return
        line = {"properties": "{}={}", "csv": '{},"{}"', "tsv": "{}\t{}"}[self._form]
        for row in rows:
            out(line.format(*row))


def _text(value: Any) -> str:
    """Return a value as Java prints it; compound ones, as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, dict | list):
        return compact(value)
    return json.dumps(value)
