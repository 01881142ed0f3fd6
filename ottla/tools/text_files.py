"""Text files that users name on the command line."""

import re
from pathlib import Path

from ottla.base.errors import ConfigError

# The names of segments have 20 digits.
_WHOLE = re.compile("0{0,20}([0-9]{1,19})")


def read_text(path: str | Path) -> str:
    """Return the text of a file in UTF-8; ConfigError with the position of other bytes."""
    data = Path(path).read_bytes()
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


def is_number(text: str, bits: int) -> bool:
    """Return True if a text is a whole number, not negative, that a signed field of `bits` holds."""
    match = _WHOLE.fullmatch(text)
    return match is not None and int(match[1]) < 1 << (bits - 1)
