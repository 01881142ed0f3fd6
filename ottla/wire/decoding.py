"""Compiles the decoder of one message in one version: straight-line Python, no schema at run time.

A run of fixed-width fields becomes one `struct.Struct`; the length (or first varint byte) that
follows a run is read with it. Objects are created with `object.__new__` and filled slot by slot.
`ottla.wire.schema.source` returns the generated code, which keeps these rules:

* a count is checked against the remaining bytes and the object budget before anything is allocated;
* a slice may run past the end; then `pos` exceeds `limit`, every later read fails, and the last
  line of the decoder checks it if there is no later read;
* bytes after the message are ignored (librdkafka sends some), unknown tags are skipped.
"""

import functools
import struct
from collections.abc import Callable
from typing import Any

from ottla.base.errors import ProtocolError
from ottla.wire import primitives
from ottla.wire.fields import (
    RECORDS,
    STRING,
    UUID,
    Array,
    Field,
    Fixed,
    Message,
    Nested,
    Struct,
    Type,
    Variable,
    execute,
)

# Arrays of integers up to this length use a precompiled Struct.
_MANY_MAX = 32


@functools.cache
def unpacker(codes: str) -> Callable[..., tuple[Any, ...]]:
    """Return `unpack_from` of a cached Struct in network byte order."""
    return struct.Struct(f">{codes}").unpack_from


@functools.cache
def _unpackers(code: str) -> list[Callable[..., tuple[Any, ...]]]:
    return [struct.Struct(f">{count}{code}").unpack_from for count in range(_MANY_MAX + 1)]


def has_records(cls: type[Struct]) -> bool:
    """True if record batches occur anywhere in the struct."""
    for field in cls.FIELDS:
        item = field.type.item if isinstance(field.type, Array) else field.type
        if item is RECORDS or (isinstance(item, Nested) and has_records(item.struct)):
            return True
    return False


def smallest_size(type: Type, version: int, flexible: bool, nullable: bool = False) -> int:
    """Return the smallest encoded size of a value of this type, in bytes."""
    if isinstance(type, Fixed):
        return type.size_bytes
    if isinstance(type, Nested) and not nullable:
        fields = [
            smallest_size(field.type, version, flexible, field.is_nullable_in(version))
            for field in type.struct.FIELDS
            if field.is_in(version) and field.tag is None
        ]
        return sum(fields) + flexible
    if flexible or isinstance(type, Nested):
        return 1
    return 2 if type is STRING else 4


def objects_per_item(type: Type) -> int:
    """Return the cost of one array element in the object budget.

    The element, and each list and struct in it, costs 1; two strings cost as much as a struct.
    """
    if not isinstance(type, Nested):
        return 1
    fields = type.struct.FIELDS
    lists = sum(isinstance(field.type, Array) for field in fields)
    strings = sum(isinstance(field.type, Variable) for field in fields)
    nested = sum(
        objects_per_item(field.type)
        for field in fields
        if isinstance(field.type, Nested) and field.tag is None
    )
    return 1 + lists + strings // 2 + nested


def decoder_source(cls: type[Message], version: int) -> tuple[str, dict[str, Any]]:
    """Return the source of `decode(buffer, pos, budget) -> (message, end)` and its names."""
    writer = _DecoderWriter(cls, version)
    writer.write_message()
    return "\n".join(writer.lines), writer.names


def compile_decoder(cls: type[Message], version: int) -> Callable[..., tuple[Any, int]]:
    """Compile the decoder of one version."""
    source, names = decoder_source(cls, version)
    return execute(source, f"<decoder of {cls.__name__} v{version}>", names, "decode")


class _DecoderWriter:
    """Writes one decoder; `run` contains the fixed-width reads that have not been written yet."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version
        self.flexible = version >= cls.FLEXIBLE_SINCE
        self.keeps_view = has_records(cls)
        self.lines: list[str] = []
        self.indent = 0
        self.run: list[tuple[str, str]] = []
        self.names: dict[str, Any] = {
            "new": object.__new__,
            "malformed": malformed,
            "Malformed": (struct.error, IndexError, UnicodeDecodeError),
            "unpack_from": struct.unpack_from,
            **{name: getattr(primitives, name) for name in _PRIMITIVES},
        }

    def write(self, text: str) -> None:
        """Add one line."""
        self.lines.append("    " * self.indent + text)

    def write_message(self) -> None:
        """Write the whole function."""
        self.write(f"def decode(buffer, pos=0, budget={primitives.OBJECT_BUDGET}):")
        self.indent = 1
        self.write("try:")
        self.indent = 2
        if self.keeps_view:
            self.write("if buffer.__class__ is not memoryview:")
            self.write("    buffer = memoryview(buffer)")
        else:
            self.write("if buffer.__class__ is not bytes:")
            self.write("    buffer = bytes(buffer)")
        self.write("limit = len(buffer)")
        self.write_struct(self.cls, "message", 0)
        self.flush()
        self.write("if pos > limit:")
        self.write("    refuse_end(pos, limit)")
        self.write("return message, pos")
        self.indent = 1
        self.write("except Malformed as error:")
        self.write(f"    raise malformed({self.cls.__name__!r}, {self.version}, error) from error")

    def write_struct(self, cls: type[Struct], target: str, depth: int) -> None:
        """Write code that creates an object, fills it and reads the tagged fields at its end."""
        self.names[cls.__name__] = cls
        self.write(f"{target} = new({cls.__name__})")
        tagged: list[Field] = []
        for field in cls.FIELDS:
            present = field.is_in(self.version)
            if present and field.tag is None:
                self.write_value(
                    field.type,
                    f"{target}.{field.name}",
                    f"{cls.__name__}.{field.name}",
                    depth,
                    field.is_nullable_in(self.version),
                )
                continue
            self.write_default(field, f"{target}.{field.name}")
            if present:
                tagged.append(field)
        if self.flexible:
            self.write_tags(cls, tagged, target, depth)

    def write_default(self, field: Field, target: str) -> None:
        """Store the default of a field that may be absent."""
        value = repr(field.default)
        if isinstance(field.type, Array) and field.is_fresh:
            value = "[]"
        elif isinstance(field.type, Nested) and field.is_fresh:
            self.names[field.type.name] = field.type.struct
            value = f"{field.type.name}()"
        self.write(f"{target} = {value}")

    def write_value(
        self, type: Type, target: str, label: str, depth: int, nullable: bool = False
    ) -> None:
        """Read a value of any type into `target`."""
        if isinstance(type, Fixed):
            self.run.append((type.code, target))
        elif isinstance(type, Variable):
            self.write_bytes(type, target, label, nullable)
        elif isinstance(type, Array):
            self.write_array(type, target, label, depth, nullable)
        elif nullable:
            self.run.append(("b", "n"))
            self.flush()
            self.write(f"{target} = None")
            self.write("if n >= 0:")
            self.indent += 1
            self.write_nested(type, target, depth)
            self.flush()
            self.indent -= 1
        else:
            self.write_nested(type, target, depth)

    def write_nested(self, type: Nested, target: str, depth: int) -> None:
        """Read a struct in place; the reads before it may still be pending."""
        self.write_struct(type.struct, f"e{depth + 1}", depth + 1)
        self.write(f"{target} = e{depth + 1}")

    def write_length(self, type: Type) -> None:
        """Read a length into `n`, together with the fixed-width fields before it."""
        if self.flexible:
            self.run.append(("B", "n"))
            self.flush()
            reader = "string_size" if type is STRING else "uvarint"
            self.write("if n > 127:")
            self.write(f"    n, pos = {reader}(buffer, pos - 1)")
        else:
            self.run.append(("h" if type is STRING else "i", "n"))
            self.flush()

    def write_null_check(self, target: str, label: str, nullable: bool) -> None:
        """Write the handling of a null length; if nullable, the lines after it are one level
        deeper.
        """
        is_null = "not n" if self.flexible else "n < 0"
        self.write(f"if {is_null}:")
        if nullable:
            self.write(f"    {target} = None")
            self.write("else:")
            self.indent += 1
        else:
            self.write(f"    refuse_null({label!r})")

    def write_bytes(self, type: Variable, target: str, label: str, nullable: bool) -> None:
        """Read a string, bytes or records."""
        self.write_length(type)
        self.write_null_check(target, label, nullable)
        self.write("end = pos + n - 1" if self.flexible else "end = pos + n")
        value = "buffer[pos:end]"
        if self.keeps_view and type is not RECORDS:
            value += ".tobytes()"
        if type is STRING:
            value += ".decode()"
        self.write(f"{target} = {value}")
        self.write("pos = end")
        self.indent -= nullable

    def write_array(self, type: Array, target: str, label: str, depth: int, nullable: bool) -> None:
        """Read a counted sequence."""
        self.write_length(type)
        self.write_null_check(target, label, nullable)
        if self.flexible:
            self.write("n -= 1")
        if isinstance(type.item, Fixed) and type.item is not UUID:
            self.write_numbers(type.item, target, label)
            self.indent -= nullable
            return
        size_bytes = max(1, smallest_size(type.item, self.version, self.flexible))
        weight = objects_per_item(type.item)
        charge = "n" if weight == 1 else f"n * {weight}"
        self.write(f"if {charge} > budget or n * {size_bytes} > limit - pos:")
        self.write(f"    refuse_count({label!r}, n, limit - pos, budget)")
        self.write(f"budget -= {charge}")
        if type.item is UUID:
            value = "buffer[p : p + 16]" + (".tobytes()" if self.keeps_view else "")
            self.write(f"{target} = [{value} for p in range(pos, pos + 16 * n, 16)]")
            self.write("pos += 16 * n")
        else:
            self.write_items(type, target, label, depth)
        self.indent -= nullable

    def write_numbers(self, item: Fixed, target: str, label: str) -> None:
        """Read an array of numbers at once; unpacking bounds a short one by itself."""
        name = f"many_{item.name}"
        self.names[name] = _unpackers(item.code)
        self.write("budget -= n")
        self.write(f"if n <= {_MANY_MAX} and budget >= 0:")
        self.write(f"    {target} = [*{name}[n](buffer, pos)]")
        self.write("else:")
        self.write(f"    if budget < 0 or n * {item.size_bytes} > limit - pos:")
        self.write(f"        refuse_count({label!r}, n, limit - pos, budget + n)")
        self.write(f"    {target} = [*unpack_from(f'>{{n}}{item.code}', buffer, pos)]")
        self.write(f"pos += n * {item.size_bytes}" if item.size_bytes > 1 else "pos += n")

    def write_items(self, type: Array, target: str, label: str, depth: int) -> None:
        """Read an array of anything else, one by one."""
        items, item = f"items{depth}", f"e{depth + 1}"
        self.write(f"{target} = {items} = []")
        self.write("for _ in range(n):")
        self.indent += 1
        if isinstance(type.item, Nested):
            self.write_struct(type.item.struct, item, depth + 1)
        else:
            self.write_value(type.item, item, label, depth + 1)
        self.flush()
        self.write(f"{items}.append({item})")
        self.indent -= 1

    def write_tags(self, cls: type[Struct], tagged: list[Field], target: str, depth: int) -> None:
        """Read the tagged fields; nearly always the list is empty."""
        self.run.append(("B", "n"))
        self.flush()
        self.write("if n:")
        if not tagged:
            self.write("    pos, budget = skip_tags(buffer, pos - 1, budget)")
            return
        self.indent += 1
        self.write("n, pos = uvarint(buffer, pos - 1)")
        self.write("budget = charge_tags(n, budget)")
        self.write("for _ in range(n):")
        self.indent += 1
        self.write("tag, pos = uvarint(buffer, pos)")
        self.write(f"size{depth}, pos = uvarint(buffer, pos)")
        self.write(f"stop{depth} = pos + size{depth}")
        for index, field in enumerate(tagged):
            self.write(f"{'elif' if index else 'if'} tag == {field.tag}:")
            self.indent += 1
            label = f"{cls.__name__}.{field.name}"
            nullable = field.is_nullable_in(self.version)
            if isinstance(field.type, Nested) and nullable:
                # Unlike other sizes, 0 and 1 are a presence flag here.
                self.write("n, pos = uvarint(buffer, pos)")
                self.write(f"{target}.{field.name} = None")
                self.write("if n:")
                self.indent += 1
                self.write_nested(field.type, f"{target}.{field.name}", depth)
                self.flush()
                self.indent -= 1
            else:
                self.write_value(field.type, f"{target}.{field.name}", label, depth, nullable)
                self.flush()
            self.write(f"if pos != stop{depth}:")
            self.write(
                f"    refuse_tag_size({label!r}, size{depth}, pos - stop{depth} + size{depth})"
            )
            self.indent -= 1
        self.write("else:")
        self.write(f"    pos = stop{depth}")
        self.indent -= 2

    def flush(self) -> None:
        """Write the pending fixed-width reads as one unpack call."""
        if not self.run:
            return
        codes = "".join(code for code, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        size_bytes = struct.calcsize(f">{codes}")
        if codes == "B":
            self.write(f"{targets} = buffer[pos]")
        else:
            name = f"unpack_{codes.replace('?', 't')}"
            self.names[name] = unpacker(codes)
            self.write(f"{targets}{',' * (len(self.run) == 1)} = {name}(buffer, pos)")
        self.write(f"pos += {size_bytes}")
        self.run.clear()


_PRIMITIVES = (
    "charge_tags",
    "refuse_count",
    "refuse_end",
    "refuse_null",
    "refuse_tag_size",
    "skip_tags",
    "string_size",
    "uvarint",
)


def malformed(name: str, version: int, error: Exception) -> ProtocolError:
    """Describe malformed content."""
    if isinstance(error, UnicodeDecodeError):
        return ProtocolError(f"{name} v{version} holds text that is not UTF-8")
    return ProtocolError(f"{name} v{version} ends too early")
