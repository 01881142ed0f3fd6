"""Declaration of messages: one slotted class for all versions, fields as typed annotations.

    class Heartbeat(Message, api_key=12, versions=(0, 4), flexible_since=4):
        group_id: str = string()
        group_instance_id: str | None = string(since=3, nullable_since=3, default=None)

`since`/`until` give the versions in which a field is on the wire (both included), `nullable_since`
the first version in which it may be null, `tag` makes it a tagged field (KIP-482), `ignorable` lets
an encoder drop a value that the version cannot represent; otherwise that is an error. A field that
a version does not have is decoded as its default. Names, types and defaults are Kafka's; a tagged
struct is `None` while it is absent. `ottla.wire.decoding` and `ottla.wire.encoding` compile the
codec from these declarations; import `ottla.wire.schema`.
"""

import linecache
from collections.abc import Callable
from typing import (
    Any,
    ClassVar,
    NamedTuple,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    dataclass_transform,
    overload,
)

T = TypeVar("T")
S = TypeVar("S", bound="Struct")

NEVER = 32_767
NO_UUID = bytes(16)


class Fixed(NamedTuple):
    """A type of fixed width; `code` is its letter in `struct`, in network byte order."""

    name: str
    code: str
    size_bytes: int
    default: object


class Variable(NamedTuple):
    """A type with a length prefix: string, bytes or records."""

    name: str
    default: object


class Nested(NamedTuple):
    """Another struct in place."""

    struct: "type[Struct]"

    @property
    def name(self) -> str:
        """Kafka's name of the struct."""
        return self.struct.__name__


class Array(NamedTuple):
    """A counted sequence of one type."""

    item: "Fixed | Variable | Nested"

    @property
    def name(self) -> str:
        """The type as Kafka writes it: `[]int32`."""
        return f"[]{self.item.name}"


Type = Fixed | Variable | Nested | Array

BOOL = Fixed("bool", "?", 1, False)
INT8 = Fixed("int8", "b", 1, 0)
INT16 = Fixed("int16", "h", 2, 0)
UINT16 = Fixed("uint16", "H", 2, 0)
INT32 = Fixed("int32", "i", 4, 0)
UINT32 = Fixed("uint32", "I", 4, 0)
INT64 = Fixed("int64", "q", 8, 0)
FLOAT64 = Fixed("float64", "d", 8, 0.0)
UUID = Fixed("uuid", "16s", 16, NO_UUID)
STRING = Variable("string", "")
OCTETS = Variable("bytes", b"")
RECORDS = Variable("records", None)


class Field:
    """One field of a struct; see the module docstring for the meaning of each attribute."""

    __slots__ = ("default", "ignorable", "name", "nullable_since", "since", "tag", "type", "until")

    def __init__(
        self, type: Type, default: object, arguments: "FieldArguments", nullable_since: int = NEVER
    ) -> None:
        self.name = ""
        self.type = type
        self.default = default
        self.since = arguments.get("since", 0)
        self.until = arguments.get("until", NEVER)
        self.nullable_since = nullable_since
        self.tag = arguments.get("tag")
        self.ignorable = arguments.get("ignorable", False)

    def is_in(self, version: int) -> bool:
        """True if the field is on the wire in this version."""
        return self.since <= version <= self.until

    def is_nullable_in(self, version: int) -> bool:
        """True if the field may be null in this version."""
        return version >= self.nullable_since

    @property
    def is_fresh(self) -> bool:
        """True if each object needs its own default (a list, a struct)."""
        return self.default is not None and isinstance(self.type, Array | Nested)


class FieldArguments(TypedDict, total=False):
    """The arguments of every kind of field besides its default."""

    since: int
    until: int
    tag: int
    ignorable: bool


def boolean(*, default: bool = False, **arguments: Unpack[FieldArguments]) -> bool:
    """A byte; anything but 0 is true."""
    return cast(bool, Field(BOOL, default, arguments))


def int8(*, default: int = 0, **arguments: Unpack[FieldArguments]) -> int:
    """A signed integer of 8 bits."""
    return cast(int, Field(INT8, default, arguments))


def int16(*, default: int = 0, **arguments: Unpack[FieldArguments]) -> int:
    """A signed integer of 16 bits."""
    return cast(int, Field(INT16, default, arguments))


def uint16(*, default: int = 0, **arguments: Unpack[FieldArguments]) -> int:
    """An unsigned integer of 16 bits."""
    return cast(int, Field(UINT16, default, arguments))


def int32(*, default: int = 0, **arguments: Unpack[FieldArguments]) -> int:
    """A signed integer of 32 bits."""
    return cast(int, Field(INT32, default, arguments))


def uint32(*, default: int = 0, **arguments: Unpack[FieldArguments]) -> int:
    """An unsigned integer of 32 bits."""
    return cast(int, Field(UINT32, default, arguments))


def int64(*, default: int = 0, **arguments: Unpack[FieldArguments]) -> int:
    """A signed integer of 64 bits."""
    return cast(int, Field(INT64, default, arguments))


def float64(*, default: float = 0.0, **arguments: Unpack[FieldArguments]) -> float:
    """An IEEE 754 double."""
    return cast(float, Field(FLOAT64, default, arguments))


def uuid(*, default: bytes = NO_UUID, **arguments: Unpack[FieldArguments]) -> bytes:
    """16 bytes."""
    return cast(bytes, Field(UUID, default, arguments))


@overload
def string(*, default: str = "", **arguments: Unpack[FieldArguments]) -> str: ...
@overload
def string(
    *, nullable_since: int, default: str | None = "", **arguments: Unpack[FieldArguments]
) -> str | None: ...
def string(
    *, nullable_since: int = NEVER, default: Any = "", **arguments: Unpack[FieldArguments]
) -> Any:
    """Text in UTF-8, at most 32767 bytes."""
    return Field(STRING, default, arguments, nullable_since)


@overload
def octets(*, default: bytes = b"", **arguments: Unpack[FieldArguments]) -> bytes: ...
@overload
def octets(
    *, nullable_since: int, default: bytes | None = b"", **arguments: Unpack[FieldArguments]
) -> bytes | None: ...
def octets(
    *, nullable_since: int = NEVER, default: Any = b"", **arguments: Unpack[FieldArguments]
) -> Any:
    """Opaque bytes, copied out of the frame."""
    return Field(OCTETS, default, arguments, nullable_since)


def records(**arguments: Unpack[FieldArguments]) -> Any:
    """Record batches or null: decoded as a memoryview over the frame, encoded without a copy."""
    return Field(RECORDS, None, arguments, nullable_since=0)


@overload
def array(item: Callable[..., T], **arguments: Unpack[FieldArguments]) -> list[T]: ...
@overload
def array(
    item: Callable[..., T],
    *,
    nullable_since: int,
    default: Any = (),
    **arguments: Unpack[FieldArguments],
) -> list[T] | None: ...
def array(
    item: Callable[..., Any],
    *,
    nullable_since: int = NEVER,
    default: Any = (),
    **arguments: Unpack[FieldArguments],
) -> Any:
    """A list of structs (pass the class) or of values (pass their function: `array(int32)`).

    The default is an empty list, or None if that is passed.
    """
    assert default is None or default == ()
    return Field(Array(_item_type(item)), default, arguments, nullable_since)


@overload
def nested(item: type[S], **arguments: Unpack[FieldArguments]) -> S: ...
@overload
def nested(
    item: type[S], *, nullable_since: int = NEVER, default: Any, **arguments: Unpack[FieldArguments]
) -> S | None: ...
def nested(
    item: type[Any],
    *,
    nullable_since: int = NEVER,
    default: Any = (),
    **arguments: Unpack[FieldArguments],
) -> Any:
    """A struct in place, by default one with defaults.

    With a `tag` it must be declared with `default=None`: it is None while it is absent. A tagged
    struct that may also be null has `default=()`: absent means defaults, and null is written.
    """
    assert default is None or default == ()
    assert default is None or "tag" not in arguments or nullable_since != NEVER
    return Field(Nested(item), default, arguments, nullable_since)


def _item_type(item: Callable[..., Any]) -> Fixed | Variable | Nested:
    if isinstance(item, StructType):
        return Nested(cast("type[Struct]", item))
    field = item()
    assert isinstance(field, Field)
    assert isinstance(field.type, Fixed | Variable)
    return field.type


@dataclass_transform(kw_only_default=True)
class StructType(type):
    """Turns the declared fields into slots and stores them, in order, as `FIELDS`."""

    FIELDS: tuple[Field, ...]

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **arguments: Any
    ) -> "StructType":
        fields = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key, field in fields.items():
            field.name = key
            del namespace[key]
        namespace["__slots__"] = tuple(fields)
        namespace["FIELDS"] = tuple(fields.values())
        return super().__new__(mcs, name, bases, namespace, **arguments)


class Struct(metaclass=StructType):
    """A value with named fields, mutable and compared by content.

    The constructor takes keywords only; it is compiled when the first object is made, because a
    process uses few of the structs that it imports.
    """

    FIELDS: ClassVar[tuple[Field, ...]]

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        cls.__init__ = compile_constructor(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        texts = []
        for field in self.FIELDS:
            value = getattr(self, field.name)
            if isinstance(value, memoryview):
                texts.append(f"{field.name}=<{value.nbytes} bytes>")
            elif value not in (field.default, []):
                texts.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(texts)})"


class Message(Struct):
    """A request, a response or a stored value: a struct that has versions of its own.

    Class arguments: `versions=(first, last)`, `flexible_since` (compact lengths and tagged fields
    from that version on; never if left out), `api_key`, and `flexible_header=False` for the one
    response whose header has no tagged fields (ApiVersions).
    """

    API_KEY: ClassVar[int]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_SINCE: ClassVar[int]
    FLEXIBLE_HEADER_SINCE: ClassVar[int]
    DECODERS: ClassVar[dict[int, Callable[..., Any]]]
    ENCODERS: ClassVar[dict[int, Callable[..., Any]]]

    def __init_subclass__(
        cls,
        *,
        versions: tuple[int, int],
        flexible_since: int = NEVER,
        api_key: int = -1,
        flexible_header: bool = True,
    ) -> None:
        cls.API_KEY = api_key
        cls.MIN_VERSION, cls.MAX_VERSION = versions
        cls.FLEXIBLE_SINCE = flexible_since
        cls.FLEXIBLE_HEADER_SINCE = flexible_since if flexible_header else NEVER
        cls.DECODERS = {}
        cls.ENCODERS = {}


_MISSING: Any = object()


def compile_constructor(cls: type[Struct]) -> Callable[..., None]:
    """Generate `__init__` with one keyword for each field."""
    names: dict[str, Any] = {"missing": _MISSING}
    parameters, lines = [], []
    for field in cls.FIELDS:
        value = field.name
        default = repr(field.default)
        if field.is_fresh:
            default = "missing"
            fresh = "[]"
            if isinstance(field.type, Nested):
                names[field.type.name] = field.type.struct
                fresh = f"{field.type.name}()"
            value = f"{fresh} if {field.name} is missing else {field.name}"
        parameters.append(f"{field.name}={default}")
        lines.append(f"    self.{field.name} = {value}")
    keywords = f", *, {', '.join(parameters)}" if parameters else ""
    source = "\n".join([f"def __init__(self{keywords}):", *(lines or ["    pass"])])
    return execute(source, f"<constructor of {cls.__name__}>", names, "__init__")


def execute(
    source: str, file_name: str, names: dict[str, Any], function: str
) -> Callable[..., Any]:
    """Compile generated source and return one function of it; tracebacks show its lines."""
    linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)
    exec(compile(source, file_name, "exec"), names)  # noqa: S102 - our own source, no input in it
    return cast(Callable[..., Any], names[function])
