"""The generated pages are up to date, and every option and gap is in them."""

import ast
import re

from docs import generate
from ottla.base.options import Scope
from ottla.cluster import names
from ottla.cluster.options import group_options, option_tables
from ottla.controller.planning import creation
from ottla.server.transport.apis import ROWS
from tests.law import source


def test_generated_pages_are_up_to_date() -> None:
    """`make fix` writes the pages; they are not edited by hand."""
    stale = [
        path.name
        for path, text in generate.pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run make fix: {stale}"


def test_every_option_is_documented() -> None:
    """docs/options.md has a line for each option, with a sentence of our own."""
    page = (source.ROOT / "docs/options.md").read_text(encoding="utf-8")
    for table in (option_tables.TOPIC_OPTIONS, option_tables.BROKER_OPTIONS):
        for name, row in table.rows.items():
            assert f"| `{name}` |" in page, name
            assert row.doc.endswith("."), name


def test_every_handler_lists_what_is_not_done() -> None:
    """The header of a handler has a line `Not done:`, also if it says that nothing is missing."""
    for row in ROWS:
        assert generate.NOT_DONE in (row.handler.__doc__ or ""), row.handler.__name__


_OPTIONS = "ottla/cluster/options/"
_BROKER_SIDE = (
    "base",
    "cluster",
    "controller",
    "coordinators",
    "metrics",
    "net",
    "replication",
    "security",
    "server",
    "storage",
    "tools/broker",
    "wire",
)


def _strings_in_functions(item: source.Source) -> set[str]:
    """Return the texts that the functions of a module use, also as constants of the module."""
    constants = {}
    for node in item.tree.body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            constants |= {
                name.id: value.value
                for name, value in zip(names, values, strict=False)
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant)
            }
    inside = [node for function in item.functions() for node in ast.walk(function)]
    texts = {node.value for node in inside if isinstance(node, ast.Constant)}
    texts |= {constants.get(node.id) for node in inside if isinstance(node, ast.Name)}
    return {text for text in texts if isinstance(text, str)}


def _read_options() -> set[str]:
    """Return the names of options that code of the broker reads; a row itself does not read."""
    tables, others = [], []
    for item in source.sources():
        if item.path.startswith(_OPTIONS):
            tables.append(item)
        elif item.path.startswith(tuple(f"ottla/{package}/" for package in _BROKER_SIDE)):
            others.append(item)
    assert tables, f"no rows of options in {_OPTIONS}"
    names = set().union(*map(_strings_in_functions, tables))
    for item in others:
        names |= set(re.findall(r'"([A-Za-z0-9.]+)"', item.text))
    return names


def test_every_option_is_used_or_documented_as_unused() -> None:
    """An option that no code reads must not look effective."""
    # Read as the default of a topic option.
    others = {
        synonym.name
        for name in option_tables.TOPIC_OPTIONS.rows
        for synonym in option_tables.topic_synonyms(name)
    }
    # Read as the limits of an option of groups.
    for name in group_options.GROUP_OPTIONS.rows:
        family, _, suffix = name.partition(".")
        others |= {f"group.{name}", f"group.{family}.min.{suffix}", f"group.{family}.max.{suffix}"}
    readers = _read_options()
    silent = [
        f"{row.scope.value} option {name}"
        for table in (option_tables.TOPIC_OPTIONS, option_tables.BROKER_OPTIONS)
        for name, row in table.rows.items()
        if not row.doc.startswith(generate.INERT)
        and name not in readers
        and not (row.scope is Scope.BROKER and name in others)
    ]
    assert not silent, f"read these, or say in the row that they have no effect: {silent}"


def test_the_pages_agree_on_which_internal_topics_are_synced() -> None:
    """The option, the decision and the page name the topics that are created with flush.on.ack."""
    snapshot = option_tables.parse_broker_settings({}).snapshot
    synced = {
        topic
        for topic in (names.GROUP_OFFSETS_TOPIC, names.TRANSACTION_STATE_TOPIC)
        if creation.internal_topic(topic, snapshot, 1).config.get("flush.on.ack") == "true"
    }
    texts = {"flush.on.ack": option_tables.TOPIC_OPTIONS.row("flush.on.ack").doc}
    for page in ("decisions/0011-defaults-that-differ.md", "durability.md"):
        text = (source.ROOT / "docs" / page).read_text(encoding="utf-8")
        texts[page] = "\n".join(
            line for line in text.splitlines() if "created with" in line or "|" in line
        )
    for page_name, text in texts.items():
        assert set(re.findall(r"\b__\w+", text)) == synced, page_name


def test_the_decision_lists_every_default_that_differs_from_kafkas() -> None:
    """An option whose row gives Kafka's default is in the table of the decision."""
    decision = source.ROOT / "docs/decisions/0011-defaults-that-differ.md"
    listed = {
        name
        for line in decision.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([\w.]+)`", line.split("|")[1])
    }
    rows = option_tables.BROKER_OPTIONS.rows
    assert [
        name for name, row in rows.items() if " Kafka: " in row.doc and name not in listed
    ] == []


# Of a link, or of the definition of one at the end of a page.
_TARGET = r"(?:\]\(|^\[[^\]]+\]: )([^)#\s]+)"


def test_relative_links_of_pages_lead_to_files() -> None:
    """Relative links refer to existing files."""
    pages = [*source.ROOT.glob("*.md"), *source.ROOT.glob("docs/**/*.md")]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(_TARGET, page.read_text(encoding="utf-8"), re.MULTILINE)
        if "://" not in target
    ]
    assert len(links) > 50
    dead = [
        f"{page.name}: {target}" for page, target in links if not (page.parent / target).exists()
    ]
    assert dead == []


def test_every_decision_has_a_number_of_its_own() -> None:
    """The file name and the title of a decision begin with its number."""
    pages = sorted((source.ROOT / "docs/decisions").glob("[0-9]*.md"))
    numbers = [page.name[:4] for page in pages]
    assert numbers == [f"{number:04}" for number in range(1, len(pages) + 1)]
    for page, number in zip(pages, numbers, strict=True):
        assert page.read_text(encoding="utf-8").startswith(f"# {number} "), page.name


def test_every_module_that_the_architecture_names_exists() -> None:
    """Paths in ARCHITECTURE.md are relative to the repository, to `ottla/` or to `ottla/streams/`."""
    page = (source.ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = (source.ROOT, source.ROOT / "ottla", source.ROOT / "ottla/streams")
    named = set(re.findall(r"`([a-z_/0-9]+\.py)`", page))
    assert len(named) > 30
    missing = [path for path in named if not any((folder / path).exists() for folder in folders)]
    assert not missing
