"""The table of APIs and all declarations in it are compared with the schemas of Apache Kafka."""

import importlib
import importlib.resources
import json
import pkgutil
import re
from typing import Any

import pytest

from ottla.wire import fields
from ottla.wire.api_keys import APIS, Api, ApiKey, api_of
from ottla.wire.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from tests.wire import foreign, samples

RESOURCES = importlib.resources.files("kafka.protocol.schemas.resources")
# The floor of 4.x and the ceiling of 4.3 of each API, as `4.3` brokers list them.
SERVED_BY_THIS_ISSUE = (
    (0, 3, 13), (1, 4, 18), (2, 1, 11), (3, 0, 13), (8, 2, 10), (9, 1, 10), (10, 0, 6), (11, 0, 9),
    (12, 0, 4), (13, 0, 5), (14, 0, 5), (15, 0, 6), (16, 0, 5), (18, 0, 4), (19, 2, 7), (20, 1, 6),
    (21, 0, 2), (22, 0, 6), (23, 2, 4), (32, 1, 4), (33, 0, 2), (37, 0, 3), (42, 0, 2), (44, 0, 1),
    (60, 0, 2),
)  # fmt: skip


def kafka_schema(name: str) -> dict[str, Any] | None:
    """Read Kafka's own schema of a message, which is JSON with comments."""
    path = RESOURCES / f"{name}.json"
    if not path.is_file():
        return None
    text = re.sub(r"(?m)^\s*//.*$|\s//.*$", "", path.read_text(encoding="utf-8"))
    return json.loads(text)


def bounds(text: str | None) -> tuple[int, int] | None:
    """Parse `3+`, `1-4`, `2` or `none`."""
    if text in (None, "none"):
        return None
    first, _, last = text.rstrip("+").partition("-")
    return int(first), fields.NEVER if text.endswith("+") else int(last or first)


def snake(name: str) -> str:
    """Convert `IsrNodes` to `isr_nodes`."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def compare(
    cls: type[fields.Struct], theirs: list[Any], common: dict[str, Any], lo: int, hi: int
) -> None:
    """Compare the fields of a struct, and of nested structs, in the supported versions."""
    present = []
    for field in theirs:
        first, last = bounds(field["versions"]) or (0, -1)
        if first <= hi and last >= lo:
            present.append((field, max(first, lo), min(last, hi)))
    assert [field.name for field in cls.FIELDS] == [snake(field["name"]) for field, _, _ in present]
    for ours, (field, first, last) in zip(cls.FIELDS, present, strict=True):
        location = f"{cls.__name__}.{ours.name}"
        assert (max(ours.since, lo), min(ours.until, hi)) == (first, last), location
        nullable = bounds(field.get("nullableVersions"))
        for version in range(first, last + 1):
            allowed = nullable is not None and nullable[0] <= version <= nullable[1]
            assert ours.is_nullable_in(version) == allowed, f"{location} in v{version}"
        tagged = bounds(field.get("taggedVersions"))
        assert ours.tag == (field["tag"] if tagged and tagged[0] <= hi else None), location
        if (first, last) != (lo, hi):
            assert ours.ignorable == field.get("ignorable", False), location
        compare_default(ours, field, location)
        name = field["type"].removeprefix("[]")
        item = ours.type.item if isinstance(ours.type, fields.Array) else ours.type
        assert isinstance(ours.type, fields.Array) == field["type"].startswith("[]"), location
        if isinstance(item, fields.Nested):
            compare(item.struct, field.get("fields") or common[name], common, first, last)
        else:
            assert item.name == name, location


def compare_default(ours: fields.Field, field: dict[str, Any], location: str) -> None:
    """Compare defaults; a tagged struct is None here if Kafka has one with defaults."""
    theirs = field.get("default")
    if ours.is_fresh:
        assert theirs in (None, ""), location
    elif theirs in ("null", None) and isinstance(ours.type, fields.Array | fields.Nested):
        assert theirs == "null" or ours.tag is not None, location
    elif theirs == "null":
        assert ours.default is None, location
    elif theirs is None:
        assert isinstance(ours.type, fields.Fixed | fields.Variable)
        assert ours.default == ours.type.default, location
    elif ours.type is fields.STRING:
        assert ours.default == theirs, location
    elif ours.type is fields.BOOL:
        assert ours.default == (str(theirs).lower() == "true"), location
    else:
        assert ours.default == int(str(theirs), 0), location


DECLARED = [
    *samples.MESSAGES,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
]


@pytest.mark.parametrize("cls", DECLARED, ids=samples.version_id)
def test_declaration_is_kafkas(cls: type[fields.Message]) -> None:
    """Names, order, types, versions, tags, defaults and ignorable fields are the same as in Kafka."""
    theirs = kafka_schema(cls.__name__)
    if theirs is None:
        assert cls.__name__.startswith(foreign.NOT_IN_KAFKA_PYTHON)
        pytest.skip("kafka-python ships no schema of it")
    assert bounds(theirs["validVersions"]) == (cls.MIN_VERSION, cls.MAX_VERSION)
    flexible = bounds(theirs.get("flexibleVersions"))
    assert (flexible[0] if flexible else fields.NEVER) == cls.FLEXIBLE_SINCE
    assert theirs.get("apiKey", -1) == cls.API_KEY
    common = {struct["name"]: struct["fields"] for struct in theirs.get("commonStructs", ())}
    compare(cls, theirs["fields"], common, cls.MIN_VERSION, cls.MAX_VERSION)


@pytest.mark.parametrize("row", SERVED_BY_THIS_ISSUE, ids=lambda row: ApiKey(row[0]).name)
def test_versions_are_those_of_kafka_4_3(row: tuple[int, int, int]) -> None:
    """The ranges of the APIs that clients need most are the same as in Kafka 4.3."""
    key, first, last = row
    assert (APIS[key].min_version, APIS[key].max_version) == (first, last)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_kio_knows_the_same_versions(api: Api) -> None:
    """kio's list of the APIs of 4.3 has the same key, name and versions."""
    if api.name in foreign.WITH_ZOOKEEPER:
        pytest.skip("Apache Kafka 4 has no such API")
    package = importlib.import_module(f"kio.schema.{api.stem}")
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    assert sorted(int(name[1:]) for name in names) == list(
        range(api.min_version, api.max_version + 1)
    )
    newest = importlib.import_module(f"kio.schema.{api.stem}.v{api.max_version}.request")
    assert getattr(newest, f"{api.name}Request").__api_key__ == api.key


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_request_and_response_belong_together(api: Api) -> None:
    """Both are in the file of the stem, with one key and one range of versions."""
    assert api.request.__module__ == api.response.__module__ == f"ottla.wire.messages.{api.stem}"
    assert api.request.__name__ == f"{api.name}Request"
    assert api.response.__name__ == f"{api.name}Response"
    assert api.min_version == api.response.MIN_VERSION
    assert api.max_version == api.response.MAX_VERSION
    assert api.flexible_since == api.response.FLEXIBLE_SINCE


def test_every_message_file_has_its_row() -> None:
    """A file in `messages/` that is not in the table would be unused."""
    folder = importlib.resources.files("ottla.wire.messages")
    stems = {
        path.name.removesuffix(".py") for path in folder.iterdir() if path.name.endswith(".py")
    }
    assert stems - {"__init__"} == {api.stem for api in APIS.values()}


def test_an_api_is_found_by_its_messages() -> None:
    """An API is found by an object or a class, of either direction."""
    fetch = APIS[ApiKey.FETCH]
    assert api_of(FetchRequest()) is api_of(FetchResponse) is fetch
    assert (fetch.request, fetch.response) == (FetchRequest, FetchResponse)
    assert fetch.is_ever_flexible
    assert not APIS[ApiKey.SASL_HANDSHAKE].is_ever_flexible
