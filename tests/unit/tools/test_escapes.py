"""The backslash escapes of kcat."""

import pytest

from ottla.tools.escapes import unescape


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (r"\n", b"\n"),
        (r"\t|\r", b"\t|\r"),
        (r"\x1e\xFF", b"\x1e\xff"),
        (r"\0", b"\0"),
        (r"\\n", rb"\n"),
        (r"\q", b"q"),
        ("ä:", "ä:".encode()),
        ("", b""),
        ("\\", b"\\"),
    ],
)
def test_escapes_become_bytes(text: str, data: bytes) -> None:
    """Every byte can be written; other text stays unchanged."""
    assert unescape(text) == data
