"""Text files that users name on the command line."""

import os
import re
import stat
from pathlib import Path
from typing import Any

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred

_parse_document = deferred("ottla.operations.json_documents", "parse_document")

# The names of segments have 20 digits.
_WHOLE = re.compile("0{0,20}([0-9]{1,19})")
# More than any text that a pipe such as <(command) passes to a command. /dev/zero never ends.
_SPECIAL_FILE_MIB = 64


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file or of a pipe; ConfigError if a special file does not end."""
    limit = _SPECIAL_FILE_MIB << 20
    with open(path, "rb") as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file.read()
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ConfigError(
            f"{path} is not a regular file and has more than {_SPECIAL_FILE_MIB} MiB: name a "
            "regular file, or a pipe with less data"
        )
    return data


def read_text(path: str | Path) -> str:
    """Return the text of a file in UTF-8; ConfigError with the position of other bytes, and if a
    special file does not end.
    """
    data = read_bytes(path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8: "
            "save the file as UTF-8 text"
        ) from None
    # As text files are read: every end of line is \n.
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: str, name: str = "version") -> Any:
    """Return the object of a JSON file in version 1, which the field `name` has; ConfigError if it
    is none, or unreadable.
    """
    try:
        text = read_text(path)
    except OSError:
        raise ConfigError(f"Unable to read file {path}") from None
    return _parse_document(text, name)


def is_number(text: str, bits: int) -> bool:
    """Return True if a text is a whole number, not negative, that a signed field of `bits` holds."""
    match = _WHOLE.fullmatch(text)
    return match is not None and int(match[1]) < 1 << (bits - 1)
