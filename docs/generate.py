"""Writes docs/{apis,options,gaps,compatibility,platforms,scripts,search,what-readers-show}.md from
the code.

`--check` only compares.

The pages are computed from the table of supported APIs, the option tables, and the headers of
modules ("Not done:"), so that they agree with the code. tests/law/test_docs.py checks that they are
up to date.
"""

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import ottla
from docs import compatibility, platforms
from ottla.base.options import Option, OptionType, Table
from ottla.base.search.language import TABLE
from ottla.cluster.options import option_tables
from ottla.cluster.options.option_rows import INERT, INT_MAX, LONG_MAX
from ottla.server.transport.apis import ROWS
from ottla.server.transport.costs import COSTS, UNLIMITED
from ottla.wire.api_keys import APIS, ApiKey
from ottla_scripts.table import KAFKA_VERSION, SCRIPTS, VERSIONS
from tests.corpus import table as corpus

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS_FOLDER = ROOT / "ottla_scripts"
NOTE = "<!-- Written by `make fix` (docs/generate.py) from the code: change the code, not this page. -->"
NOT_DONE = "Not done:"

_LARGEST = {INT_MAX: "2³¹ − 1", LONG_MAX: "2⁶³ − 1"}


def _page(title: str, lead: str, parts: Iterable[str]) -> str:
    return "\n\n".join([f"# {title}", NOTE, lead, *parts]) + "\n"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '·') for cell in line)} |" for line in lines)


def platforms_page() -> str:
    """Return docs/platforms.md: systems, Pythons, and the wheels of dependencies."""
    heads, *rows = platforms.DIFFERENCES
    differences = _table(heads, rows)
    wheels = _table(["", *platforms.SYSTEMS.values()], platforms.rows())
    parts = ["## What differs", differences, platforms.TEXT, platforms.WHEELS, wheels]
    return _page(platforms.TITLE, platforms.LEAD, parts)


def _header(path: Path) -> list[str]:
    """Return the paragraphs of a module's docstring, each on one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def _versions(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def apis_page() -> str:
    """Return docs/apis.md: the APIs that are supported, and those that are not."""
    served = sorted(ROWS, key=lambda row: int(row.handler.API))
    rows = []
    for row in served:
        handler = row.handler
        api = APIS[int(handler.API)]
        path = f"ottla/server/handlers/{api.stem}.py"
        summary = _header(ROOT / path)[0].split(": ", 1)[1].rstrip(".")
        rows.append(
            [
                str(int(handler.API)),
                f"[{api.name}](../{path})",
                _versions(handler.MIN_VERSION, handler.MAX_VERSION),
                _versions(api.min_version, api.max_version),
                summary,
            ]
        )
    keys = {int(row.handler.API) for row in served}
    others = [f"{api.name} ({key})" for key, api in sorted(APIS.items()) if key not in keys]
    return _page(
        "APIs",
        "The APIs that the broker supports, by API key. Differences from the versions of Apache Kafka "
        "4.3, and other gaps, are listed in [gaps.md](gaps.md).",
        [
            _table(["Key", "API", "Versions", "Kafka 4.3", "Summary"], rows),
            "## Known to the codec, not supported",
            ", ".join(others) + ".",
            "## Bounds of a request",
            "No request stops the others for more than 100 ms. A request with more bytes than the "
            "second column is large: it waits for its turn, and is handled a few milliseconds at a "
            "time. The third column is the number of its elements that the broker handles at once; "
            "all of them if it is empty. The broker closes the connection of a large request that "
            "has more objects than the fourth column (structs, and the texts and numbers of "
            "lists), takes 30 s of processor time, or has a response with more MiB than the last "
            "column. Tools and clients that produce or consume take turns. An element that "
            "is named more than once is described once. Requests that only brokers may send are "
            "not in the table.",
            _table(
                ["API", "Bytes", "Elements at once", "Objects", "MiB of the response"],
                _costs(int(row.handler.API) for row in served),
            ),
        ],
    )


def _costs(keys: Iterable[int]) -> Iterator[list[str]]:
    for key in keys:
        cost = COSTS[ApiKey(key)]
        if cost.large_bytes == UNLIMITED:
            continue
        yield [
            APIS[key].name,
            str(cost.large_bytes),
            str(cost.splits[0].at_once) if cost.splits else "",
            str(cost.objects_max),
            str(cost.response_bytes_max // 2**20) if cost.splits else "",
        ]


def options_page() -> str:
    """Return docs/options.md: every option of topics and of brokers."""
    return _page(
        "Options",
        "Names, types, defaults and limits are Apache Kafka 4.3's unless the text says otherwise. "
        "A topic's options can be changed at any time; those of a broker where the last column "
        "says so. A topic that does not set an option has the value of the broker option in the "
        "last column.\n\n"
        "`ottla up` reads a broker's options from `-o name=value` and from a file (`--config`); `-o` "
        "has precedence. A name that Ottla does not know is an error with `-o` and in tests "
        "(`Cluster(options=…)`). In a file it is ignored with a warning, because files written for "
        "Kafka name options of plug-ins. Both messages name the option that was probably meant. "
        "A broker with an option of security that it does not honour does not start: an unknown name that "
        "begins like `ssl.` or `sasl.`, and an option of a listener that does not exist. "
        "`--port`, `--host`, `--data` and `--metrics-port` replace what a file says about "
        "`listeners`, `log.dirs` and `metrics.listener`; together with `-o` for the same option "
        "they are an error.",
        [
            "## Topics",
            _table(
                ["Option", "Type", "Default", "Allowed", "Meaning", "Default from"],
                _option_rows(option_tables.TOPIC_OPTIONS, _from),
            ),
            "## Brokers",
            _table(
                ["Option", "Type", "Default", "Allowed", "Meaning", "At runtime"],
                _option_rows(
                    option_tables.BROKER_OPTIONS, lambda row: "yes" if row.dynamic else ""
                ),
            ),
        ],
    )


def _option_rows(table: Table, last: Callable[[Option], str]) -> Iterator[list[str]]:
    for name in sorted(table.rows):
        row = table.rows[name]
        yield [
            f"`{name}`",
            row.type.name.lower(),
            _default(row),
            _allowed(row),
            row.doc,
            last(row),
        ]


def _from(row: Option) -> str:
    names = [synonym.name for synonym in option_tables.topic_synonyms(row.name)]
    return ", ".join(f"`{name}`" for name in names)


def _default(row: Option) -> str:
    if row.default is None:
        return ""
    if isinstance(row.default, int) and row.default in _LARGEST:
        return _LARGEST[row.default]
    return f"`{row.render(row.default)}`" if row.render(row.default) else "(empty)"


def _allowed(row: Option) -> str:
    if row.choices:
        return ", ".join(f"`{choice}`" for choice in row.choices)
    if row.type is OptionType.BOOLEAN:
        return "`true`, `false`"
    if row.minimum is None and row.maximum is None:
        return ""
    low = "" if row.minimum is None else f"{row.minimum:.15g}"
    high = "" if row.maximum is None else f"{row.maximum:.15g}"
    if not high:
        return f"≥ {low}"
    return f"{low} … {high}" if low else f"≤ {high}"


def gaps_page() -> str:
    """Return docs/gaps.md: the gaps that headers and options declare."""
    names = {api.stem: api.name for api in APIS.values()}
    handlers = []
    others: dict[str, list[str]] = {}
    for path in (*sorted((ROOT / "ottla").rglob("*.py")), *sorted(SCRIPTS_FOLDER.rglob("*.py"))):
        folder, _, module = path.relative_to(ROOT).as_posix().partition("/")
        package = folder
        if folder == "ottla":
            package, _, module = module.partition("/")
            folder, package = f"{folder}/{package}", f"{folder}.{package}"
        for gap in _gaps(path):
            link = f"../{folder}/{module}"
            if module.startswith("handlers/"):
                handlers.append(f"* [{names[path.stem]}]({link}): {gap}")
            else:
                subject = " ".join(_header(path)[0].split()).rstrip(".")
                others.setdefault(package, []).append(f"* [{subject}]({link}). Not done: {gap}")
    served = {int(row.handler.API): row.handler for row in ROWS}
    versions = [
        f"* {api.name}: versions {_versions(handler.MIN_VERSION, handler.MAX_VERSION)} of "
        f"{_versions(api.min_version, api.max_version)}"
        for key, handler in sorted(served.items())
        if ((api := APIS[key]).min_version, api.max_version)
        != (handler.MIN_VERSION, handler.MAX_VERSION)
    ]
    return _page(
        "Gaps",
        "The features that Ottla does not have, and its differences from Apache Kafka 4.3. APIs "
        "that are not supported at all are in [apis.md](apis.md).",
        [
            "## APIs",
            "\n".join(handlers) or "None.",
            "## Versions",
            "\n".join(versions) or "Every supported API is supported in every version of Kafka 4.3.",
            "## Options without effect",
            "\n".join(_inert(option_tables.TOPIC_OPTIONS, "topic") + _inert(option_tables.BROKER_OPTIONS, "broker")),
            *(
                f"## Package {package}\n\n" + "\n".join(lines)
                for package, lines in others.items()
            ),
        ],
    )  # fmt: skip


def _gaps(path: Path) -> Iterator[str]:
    for paragraph in _header(path):
        _, marker, gap = paragraph.partition(NOT_DONE)
        if marker and not gap.strip().startswith("nothing"):
            yield gap.strip()


def _inert(table: Table, scope: str) -> list[str]:
    return [
        f"* {scope} option `{name}`{row.doc.removeprefix(INERT).rstrip('.')}"
        for name, row in sorted(table.rows.items())
        if row.doc.startswith(INERT)
    ]


def compatibility_page() -> str:
    """Return docs/compatibility.md: foreign clients, and the tests of each."""
    heads, lines = compatibility.matrix()
    return _page(
        "Compatibility",
        "The foreign clients and tools that are tested with Ottla. The numbers count "
        "the tests below `tests/compat` that use a client; `make test` runs them all, with "
        "the versions of the headline (a test whose program is missing is skipped with a message). "
        "Apache Kafka's own responses, exchange by exchange, are in "
        "[tests/compat/recorded](../tests/compat/recorded/record.py).",
        [
            _table(heads, lines),
            "## Faults of clients",
            "\n".join(f"* {fault}" for fault in compatibility.FAULTS),
            "## What the tests expect",
            *compatibility.listing(),
        ],
    )


def scripts_page() -> str:
    """Return docs/scripts.md: Apache Kafka's scripts, and the commands that do the same."""
    rows = [
        [f"`{name}`", row.summary, f"`ottla {row.verb}`" if row.verb else "", _kafka_versions(name)]
        for name, row in SCRIPTS.items()
    ]
    return _page(
        "Scripts",
        f"Apache Kafka's command-line scripts, with the options and the output of version {KAFKA_VERSION}. "
        "A script that was written for Apache Kafka's tools works with these, against Ottla and "
        "against Apache Kafka.\n\n"
        '```sh\npip install "ottla[scripts]"    # kafka-topics, kafka-topics.sh, … beside ottla\n'
        "kafka-topics.sh --bootstrap-server localhost:9092 --list\n```\n\n"
        "The scripts are a distribution of their own, `ottla-scripts`, which the extra installs. "
        "`ottla scripts install DIR` writes the same names to another folder.\n\n"
        "Options of earlier versions (`--broker-list`, `--property`, …) are accepted, and the modern one is "
        "named; `--new-consumer` has no effect. Options may have one dash (`-list`). `--output json` prints lines of JSON and nothing else on standard output; "
        'sentences become `{"messages": […]}`. `--plot FILE.svg` of the three performance tests draws '
        "what they measured. Apache Kafka's tools have neither. Standard output, standard error and exit codes are compared with recordings of Apache "
        "Kafka's tools (`tests/compat/scripts/transcripts`). Help texts, stack traces "
        "and lines of a logger are not: [decision 0022](decisions/0022-scripts.md). Ottla runs on "
        "Linux only, so there are no `.bat` files for Windows.\n\n"
        "The quickstarts of Apache Kafka 4.3 and 3.9 run unchanged (`tests/process/test_quickstart.py`). `kafka-storage "
        "format` is not necessary with Ottla, but the cluster has the id that it gets. Nodes of a larger KRaft quorum are "
        "not formatted and do not start: [a cluster](cluster.md) needs a ZooKeeper, or `ottla up --brokers 3`.\n\n"
        "Each script starts in less than 150 ms; `python -m bench.scripts --store` measures all of them "
        "(`bench/results/2026-11-26-025817-scripts.md`).",
        [_table(["Script", "Purpose", "The same with ottla", "In Apache Kafka"], rows)],
    )


def _kafka_versions(name: str) -> str:
    since, removed = VERSIONS[name]
    return f"since {since}, removed in {removed}" if removed else f"since {since}"


_DISTRIBUTION = """# Written by `make fix` (docs/generate.py) from ottla_scripts/table.py.
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "ottla-scripts"
version = "%(version)s"
description = "Apache Kafka's scripts for Ottla and Apache Kafka; installed by `pip install ottla[scripts]`"
readme = "README.md"
license = "Apache-2.0"
requires-python = ">=3.11"
dependencies = ["ottla==%(version)s"]

# The package is at the root of the repository, so that a checkout needs no second installation.
[tool.hatch.build.targets.wheel.force-include]
"../../ottla_scripts" = "ottla_scripts"

[project.scripts]
"""


def scripts_distribution() -> str:
    """Return the project file of the distribution that has the scripts and puts them on PATH."""
    target = "ottla_scripts.entry:main"
    rows = [f'"{name}{form}" = "{target}"\n' for name in SCRIPTS for form in ("", ".sh")]
    return _DISTRIBUTION % {"version": ottla.__version__} + "".join(rows)


def search_page() -> str:
    """Return docs/search.md: the language of filters."""
    return _page(
        "Filters of records",
        "Brokers (`/search`), `ottla topic search --where`, the console's pages and its REST API (`where`) "
        "select records with the same language:\n\n"
        '```\nkey starts-with "eu-" and $.total >= 100 and not header.trace is null\n```\n\n'
        "A filter is one or more conditions. A condition names a part of the record, and compares it. If it names "
        "several values (a repeated header, a path with a wildcard), one of them has to match.",
        [
            _table(["Form", "Meaning"], TABLE),
            "A literal is a JSON value: texts are in double quotes. Texts are compared byte by byte as UTF-8, also with bytes that "
            "are not UTF-8. A part that is not JSON has no paths. Paths are `$`, then `.name`, `['any name']`, `[3]`, `[-1]`, "
            "`.*`, `[*]` or `..name` as often as necessary.",
            "## Short forms",
            "`ottla topic search` and `/search` have short forms for the commonest conditions. All must match.",
            _table(
                ["Option", "Parameter", "The same"],
                [
                    [
                        "`--key TEXT`, `--value TEXT`",
                        "`key`, `value`",
                        '`key contains "TEXT"`, `value contains "TEXT"`',
                    ],
                    [
                        "`--key-regex RE`, `--value-regex RE`",
                        "`key_regex`, `value_regex`",
                        '`key =~ "RE"`, `value =~ "RE"`',
                    ],
                    [
                        "`--header NAME`, `--header NAME=TEXT`",
                        "`header`",
                        '`header.NAME`, `header.NAME contains "TEXT"`',
                    ],
                    ["`--ignore-case`", "`ignore_case`", "`ignore-case` after each comparison"],
                ],
            ),
            "The rows of conditions on the console's page, and `conditions` of its API, are the same conditions as fields. Their text is "
            "a JSON value or plain text.",
        ],
    )


def readers_page() -> str:
    """Return docs/what-readers-show.md: the matrix of tests/corpus."""
    return _page(
        "What readers show",
        "Tests compare every reader and writer above the broker with plain consumers of librdkafka "
        "and kafka-python, byte for byte. Their topics have awkward records "
        "([testing-with-ottla.md](testing-with-ottla.md#awkward-records)). Each cell is a test of "
        "`tests/corpus`. **ok**: the same, in the form of the second column. **said**: something is "
        "left out or changed, and the reader says so. **open**: not tested there, or not right.",
        [
            "## Readers",
            _matrix((*corpus.READERS, *corpus.SPARK_READERS)),
            "## Writers and copies",
            _matrix((*corpus.WRITERS, *corpus.SPARK_WRITERS)),
            "## Reasons",
            "\n".join(
                f"* {row.name}{'' if topic == '*' else f', {topic}'}: {result}: {reason}."
                for row in corpus.ALL_ROWS
                for topic, (result, reason) in row.others.items()
            ),
        ],
    )


def _matrix(rows: Iterable[corpus.Row]) -> str:
    heads = ["", "compared", *(topic.removeprefix("corpus-") for topic in corpus.TOPICS)]
    return _table(heads, ([row.name, row.form, *map(row.result, corpus.TOPICS)] for row in rows))


def pages() -> dict[Path, str]:
    """Return every generated page with its path."""
    return {
        ROOT / "docs/apis.md": apis_page(),
        ROOT / "docs/options.md": options_page(),
        ROOT / "docs/gaps.md": gaps_page(),
        ROOT / "docs/compatibility.md": compatibility_page(),
        ROOT / "docs/platforms.md": platforms_page(),
        ROOT / "docs/scripts.md": scripts_page(),
        ROOT / "docs/search.md": search_page(),
        ROOT / "docs/what-readers-show.md": readers_page(),
        ROOT / "packaging/scripts/pyproject.toml": scripts_distribution(),
    }


def main(arguments: list[str]) -> int:
    """Write the pages, or print those that are not up to date."""
    stale = [
        path
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in arguments:
        for path in stale:
            sys.stderr.write(f"{path.relative_to(ROOT)} is not up to date: run make fix\n")
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pages()[path], encoding="utf-8")
        sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
