"""Compiles the encoder of one message in one version: straight-line Python, no schema at run time.

Consecutive values are packed by one call, including at most one string and a few arrays of
integers; such a packer is chosen by the actual lengths and cached (`Packers`). Record bytes are
never copied: the encoder of a message with records returns a list of buffers in which each records
field has buffers of its own.

If a version has no field for a value, the value is dropped if the field is `ignorable`; otherwise
the encoder raises ApiError UNSUPPORTED_VERSION, as for a null that the version does not allow. A
value that the type of its field cannot hold raises WrongValue, an AssertionError: it is a bug of
the caller, unless a user has given it to a client.
"""

import functools
import struct
from collections.abc import Callable
from typing import Any, NoReturn

from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.decoding import has_records
from ottla.wire.fields import (
    NEVER,
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
from ottla.wire.primitives import ONE_BYTE, encode_string_size, encode_uvarint

# Cached packers per position in a message, by the lengths of their variable parts.
_PACKERS_MAX = 512
# Variable parts in one packer; more would create too many combinations of lengths.
_ARRAYS_MAX = 3


@functools.cache
def packer(codes: str) -> Callable[..., bytes]:
    """Return `pack` of a cached Struct in network byte order."""
    return struct.Struct(f">{codes}").pack


class Packers(dict[Any, Callable[..., bytes]]):
    """The packers of one position in a message, by the lengths of its variable parts."""

    def __init__(self, codes: str) -> None:
        self.codes = codes

    def __missing__(self, lengths: Any) -> Callable[..., bytes]:
        if len(self) >= _PACKERS_MAX:
            self.clear()
        parts = lengths if isinstance(lengths, tuple) else (lengths,)
        # A size (plus one) up to 127 is one byte, larger ones are a longer varint.
        sizes = [len(encode_uvarint(length + 1)) for length in parts]
        prefixes = ["B" if size == 1 else f"{size}s" for size in sizes]
        codes = self.codes.format(*parts, *prefixes)
        pack = self[lengths] = struct.Struct(f">{codes}").pack
        return pack


def encoder_source(cls: type[Message], version: int) -> tuple[str, dict[str, Any]]:
    """Return the source of `encode(message, header) -> bytes or list of buffers` and its names."""
    writer = _EncoderWriter(cls, version)
    writer.write_message()
    return "\n".join(writer.lines), writer.names


def compile_encoder(cls: type[Message], version: int) -> Callable[..., Any]:
    """Compile the encoder of one version; it returns a list if the message has records."""
    source, names = encoder_source(cls, version)
    return execute(source, f"<encoder of {cls.__name__} v{version}>", names, "encode")


class _EncoderWriter:
    """Writes one encoder; `run` contains the values that have not been written yet."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version
        self.flexible = version >= cls.FLEXIBLE_SINCE
        self.has_records = has_records(cls)
        self.lines: list[str] = []
        self.indent = 1
        self.run: list[tuple[str, str]] = []
        self.lengths: list[str] = []
        self.has_string = False
        self.sink = "add"
        self.locals = 0
        self.names: dict[str, Any] = {
            "string_size": encode_string_size,
            "uvarint": encode_uvarint,
            "join": b"".join,
            "one_byte": ONE_BYTE,
            "unwritable": unwritable,
            "refuse_value": refuse_value,
            "Unwritable": (struct.error, TypeError, AttributeError, ValueError),
        }

    def write(self, text: str) -> None:
        """Add one line."""
        self.lines.append("    " * self.indent + text)

    def local(self, stem: str) -> str:
        """Return a new name for a local."""
        self.locals += 1
        return f"{stem}{self.locals}"

    def write_message(self) -> None:
        """Write the whole function."""
        self.lines.append("def encode(message, header=b''):")
        self.write("try:")
        self.indent = 2
        if self.has_records:
            self.write("out = []")
        self.write("parts = [header]")
        self.write("add = parts.append")
        self.write_struct(self.cls, "message", 0)
        self.flush()
        if self.has_records:
            self.write("if parts:")
            self.write("    out.append(join(parts))")
            self.write("return out")
        else:
            self.write("return join(parts)")
        self.indent = 1
        self.write("except Unwritable as error:")
        self.write(f"    raise unwritable(message, {self.version}, error) from error")

    def write_struct(self, cls: type[Struct], source: str, depth: int) -> None:
        """Write the fields of one struct."""
        tagged: list[Field] = []
        for field in cls.FIELDS:
            value = f"{source}.{field.name}"
            if not field.is_in(self.version):
                self.write_absent(cls, field, value)
            elif field.tag is None:
                self.write_value(field.type, value, depth, field.is_nullable_in(self.version))
            else:
                tagged.append(field)
        if self.flexible:
            self.write_tags(sorted(tagged, key=_tag), source, depth)

    def write_absent(self, cls: type[Struct], field: Field, value: str) -> None:
        """Write the check of a value that this version cannot represent."""
        if field.ignorable:
            return
        if field.is_fresh and isinstance(field.type, Array):
            condition = value
        elif field.is_fresh:
            assert isinstance(field.type, Nested)
            self.names[field.type.name] = field.type.struct
            condition = f"{value} != {field.type.name}()"
        elif field.default is None:
            condition = f"{value} is not None"
        else:
            condition = f"{value} != {field.default!r}"
        self.write(f"if {condition}:")
        label = f"{cls.__name__}.{field.name}"
        name = self.cls.__name__
        self.write(f"    refuse_value({label!r}, {value}, {name!r}, {self.version})")

    def write_value(self, type: Type, value: str, depth: int, nullable: bool) -> None:
        """Write a value of any type."""
        if isinstance(type, Fixed):
            self.run.append((type.code, value))
        elif type is RECORDS:
            self.write_records(value)
        elif isinstance(type, Variable):
            self.write_bytes(type, value, nullable)
        elif isinstance(type, Array):
            self.write_array(type, value, depth, nullable)
        elif nullable:
            self.write_nullable_struct(type, value, depth)
        else:
            self.write_struct(type.struct, value, depth)

    def write_nullable_struct(
        self, type: Nested, value: str, depth: int, absent: bytes = b"\xff"
    ) -> None:
        """Write a struct behind its presence byte."""
        self.flush()
        name = self.local("nested")
        self.write(f"{name} = {value}")
        self.write(f"if {name} is None:")
        self.write(f"    {self.sink}({absent!r})")
        self.write("else:")
        self.indent += 1
        self.run.append(("b", "1"))
        self.write_struct(type.struct, name, depth)
        self.flush()
        self.indent -= 1

    def size_of(self, type: Type, length: str) -> str:
        """Return the expression of a size-plus-one that may take more than one byte."""
        encode = "string_size" if type is STRING else "uvarint"
        return f"{length} + 1 if {length} < 127 else {encode}({length} + 1)"

    def write_bytes(self, type: Variable, value: str, nullable: bool) -> None:
        """Write a string or bytes into the run; a run holds one of them."""
        if self.has_string:
            self.flush()
        text, length = self.local("text"), self.local("length")
        encode = ".encode()" if type is STRING else ""
        size = self.size_of(type, length) if self.flexible else length
        if nullable:
            size_name = self.local("size")
            self.write(f"{text} = {value}")
            self.write(f"if {text} is None:")
            self.write(f"    {text} = b''")
            self.write(f"    {length} = 0")
            self.write(f"    {size_name} = {0 if self.flexible else -1}")
            self.write("else:")
            if encode:
                self.write(f"    {text} = {text}{encode}")
            self.write(f"    {length} = len({text})")
            self.write(f"    {size_name} = {size}")
            size = size_name
        else:
            self.write(f"{text} = {value}{encode}")
            self.write(f"{length} = len({text})")
        prefix = "PREFIX" if self.flexible else ("h" if type is STRING else "i")
        self.has_string = True
        self.lengths.append(length)
        self.run.append((prefix, size))
        self.run.append(("LENGTHs", text))

    def write_array(self, type: Array, value: str, depth: int, nullable: bool) -> None:
        """Write an array; numbers go into the run, anything else is looped over."""
        if isinstance(type.item, Fixed) and type.item is not UUID and not nullable:
            self.write_numbers(type.item, value)
            return
        items = self.local("items")
        self.write(f"{items} = {value}")
        if nullable:
            self.flush()
            self.write(f"if {items} is None:")
            null = "\\x00" if self.flexible else "\\xff\\xff\\xff\\xff"
            self.write(f"    {self.sink}(b'{null}')")
            self.write("else:")
            self.indent += 1
        self.write_count(items)
        item = f"e{depth + 1}"
        self.write(f"for {item} in {items}:")
        self.indent += 1
        if isinstance(type.item, Nested):
            self.write_struct(type.item.struct, item, depth + 1)
        else:
            self.write_value(type.item, item, depth + 1, False)
        self.flush()
        self.indent -= 1 + nullable

    def write_count(self, items: str) -> None:
        """Write the length of an array together with the run before it."""
        length = self.local("length")
        self.write(f"{length} = len({items})")
        if not self.flexible:
            self.run.append(("i", length))
            self.flush()
            return
        pending, lengths = self.run.copy(), self.lengths.copy()
        self.write(f"if {length} < 127:")
        self.run.append(("B", f"{length} + 1"))
        self.indent += 1
        self.flush()
        self.indent -= 1
        self.write("else:")
        self.indent += 1
        self.run, self.lengths = pending, lengths
        self.flush()
        self.write(f"{self.sink}(uvarint({length} + 1))")
        self.indent -= 1

    def write_numbers(self, item: Fixed, value: str) -> None:
        """Write an array of numbers into the run."""
        if len(self.lengths) >= _ARRAYS_MAX:
            self.flush()
        values, length = self.local("values"), self.local("length")
        self.write(f"{values} = {value}")
        self.write(f"{length} = len({values})")
        if self.flexible:
            self.run.append(("PREFIX", self.size_of(Array(item), length)))
        else:
            self.run.append(("i", length))
        self.lengths.append(length)
        self.run.append((f"LENGTH{item.code}", f"*{values}"))

    def write_records(self, value: str) -> None:
        """Append the record buffers; everything written before becomes one buffer."""
        assert self.sink == "add", "records inside a tagged field"
        buffers, length = self.local("buffers"), self.local("length")
        self.write(f"{buffers} = {value}")
        self.write(f"if {buffers} is None:")
        self.write(f"    {length} = -1")
        self.write(f"    {buffers} = ()")
        self.write(f"elif {buffers}.__class__ is list:")
        self.write(f"    {length} = sum(map(len, {buffers}))")
        self.write("else:")
        self.write(f"    {length} = len({buffers})")
        self.write(f"    {buffers} = ({buffers},)")
        if self.flexible:
            self.flush()
            self.write(f"add(uvarint({length} + 1))")
        else:
            self.run.append(("i", length))
            self.flush()
        self.write(f"if {length} > 0:")
        self.write("    out.append(join(parts))")
        self.write("    parts.clear()")
        self.write(f"    out.extend({buffers})")

    def write_tags(self, tagged: list[Field], source: str, depth: int) -> None:
        """Write the tagged fields that do not have their default (KIP-482)."""
        if not tagged:
            self.run.append(("B", "0"))
            return
        self.flush()
        count, content = self.local("tags"), self.local("content")
        outer = self.sink
        # Nearly always the list is empty.
        absent = " and ".join(_is_absent(field, f"{source}.{field.name}") for field in tagged)
        self.write(f"if {absent}:")
        self.write(f"    {outer}(b'\\x00')")
        self.write("else:")
        self.indent += 1
        self.write(f"{count} = 0")
        self.write(f"{content} = []")
        for field in tagged:
            self.write_tag(field, f"{source}.{field.name}", count, content, depth)
        self.sink = outer
        self.write(f"{outer}(uvarint({count}))")
        self.write(f"if {count}:")
        self.write(f"    {outer}(join({content}))")
        self.indent -= 1

    def write_tag(self, field: Field, source: str, count: str, content: str, depth: int) -> None:
        """Write one tagged field into `content`: tag, size, value."""
        value, buffers = self.local("value"), self.local("buffers")
        self.write(f"{value} = {source}")
        if isinstance(field.type, Array) and field.is_fresh:
            self.write(f"if {value}:")
        elif isinstance(field.type, Nested):
            self.names[field.type.name] = field.type.struct
            either = "or" if field.is_nullable_in(self.version) and field.is_fresh else "and"
            negation = "" if either == "or" else "not "
            self.write(f"if {value} is {negation}None {either} {value} != {field.type.name}():")
        elif field.default is None:
            self.write(f"if {value} is not None:")
        else:
            self.write(f"if {value} != {field.default!r}:")
        self.indent += 1
        self.write(f"{count} += 1")
        self.write(f"{buffers} = []")
        self.sink = f"{buffers}.append"
        nullable = field.is_nullable_in(self.version)
        if isinstance(field.type, Nested) and nullable:
            # Unlike other sizes, 0 and 1 are a presence flag here.
            self.write_nullable_struct(field.type, value, depth + 1, b"\0")
        else:
            self.write_value(field.type, value, depth + 1, nullable)
        self.flush()
        self.write(f"{buffers} = join({buffers})")
        self.write(f"{content}.append(uvarint({field.tag}))")
        self.write(f"{content}.append(uvarint(len({buffers})))")
        self.write(f"{content}.append({buffers})")
        self.indent -= 1

    def flush(self) -> None:
        """Write the pending values as one pack call."""
        if not self.run:
            return
        arguments = ", ".join(value for _, value in self.run)
        codes = "".join(code for code, _ in self.run)
        if not self.lengths and arguments == "0":
            self.write(f"{self.sink}({bytes(struct.calcsize(codes))!r})")
        elif codes == "B" and not self.lengths:
            self.write(f"{self.sink}(one_byte[{arguments}])")
        elif not self.lengths:
            name = f"pack_{codes.replace('?', 't')}"
            self.names[name] = packer(codes)
            self.write(f"{self.sink}({name}({arguments}))")
        else:
            name = f"packers{len(self.names)}"
            packers = self.names[name] = Packers(self.format_codes())
            # `get` of a dict is faster than a subclass's subscript; it calls the factory for
            # missing keys.
            self.names[f"{name}_get"] = packers.get
            key = ", ".join(self.lengths)
            lookup = f"{name}_get(({key}))" if len(self.lengths) > 1 else f"{name}_get({key})"
            self.write(f"{self.sink}(({lookup} or {name}[{key}])({arguments}))")
        self.run = []
        self.lengths = []
        self.has_string = False

    def format_codes(self) -> str:
        """Return the codes of a run with variable parts: `h{1}{0}sq` for `Packers`."""
        codes = []
        part = 0
        for code, _ in self.run:
            if code == "PREFIX":
                codes.append(f"{{{len(self.lengths) + part}}}")
            elif code.startswith("LENGTH"):
                codes.append(f"{{{part}}}{code.removeprefix('LENGTH')}")
                part += 1
            else:
                codes.append(code)
        return "".join(codes)


def _is_absent(field: Field, value: str) -> str:
    """Return the condition under which a tagged field is certainly not written."""
    if isinstance(field.type, Array) and field.is_fresh:
        return f"not {value}"
    if isinstance(field.type, Nested) and field.is_fresh and field.nullable_since != NEVER:
        return "False"
    if isinstance(field.type, Nested) or field.default is None:
        return f"{value} is None"
    return f"{value} == {field.default!r}"


def _tag(field: Field) -> int:
    assert field.tag is not None
    return field.tag


def refuse_value(label: str, value: object, name: str, version: int) -> NoReturn:
    """Return the error for a value that the version would drop silently."""
    raise ApiError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"{label} is set to {value!r}, which {name} v{version} has no field for.",
    )


class WrongValue(AssertionError):
    """The value of a field that its type cannot hold; `place` is as in `topics[0].name`."""

    def __init__(self, message: Message, version: int, place: str, value: object, why: str) -> None:
        name = f"{type(message).__name__}.{place}"
        super().__init__(f"{name} of v{version} cannot hold {value!r}: {why}")
        self.place, self.value, self.why = place, value, why


def unwritable(message: Message, version: int, error: Exception) -> Exception:
    """Find the value that could not be encoded."""
    problem = find_wrong_value(message, version)
    if problem is None:
        return AssertionError(f"{type(message).__name__} v{version} cannot be encoded: {error}")
    path, value = problem
    name = f"{type(message).__name__}.{path}"
    if value is None:
        return ApiError(ErrorCode.UNSUPPORTED_VERSION, f"{name} may not be null in v{version}.")
    is_text = isinstance(error, UnicodeEncodeError)
    why = "it is not text that UTF-8 can encode" if is_text else str(error)
    return WrongValue(message, version, path, value, why)


def find_wrong_value(message: Struct, version: int, path: str = "") -> tuple[str, object] | None:
    """Walk a message and return path and value of the first field with a wrong type."""
    for field in message.FIELDS:
        if not field.is_in(version):
            continue
        value = getattr(message, field.name)
        allows_null = field.is_nullable_in(version) or field.tag is not None
        if value is None and allows_null:
            continue
        wrong = _find_in_value(field.type, value, version, f"{path}{field.name}")
        if wrong is not None:
            return wrong
    return None


def _find_in_value(type: Type, value: Any, version: int, path: str) -> tuple[str, object] | None:
    if isinstance(type, Array):
        if not isinstance(value, list | tuple):
            return path, value
        for index, item in enumerate(value):
            wrong = _find_in_value(type.item, item, version, f"{path}[{index}]")
            if wrong is not None:
                return wrong
        return None
    if isinstance(type, Nested):
        if not isinstance(value, type.struct):
            return path, value
        return find_wrong_value(value, version, f"{path}.")
    return None if _fits(type, value) else (path, value)


def _fits(type: Fixed | Variable, value: Any) -> bool:
    try:
        if type is STRING:
            struct.pack(">h", len(value.encode()))
        elif isinstance(type, Variable):
            memoryview(value)
        else:
            struct.pack(f">{type.code}", value)
    except (struct.error, TypeError, AttributeError, ValueError):
        return False
    return True
