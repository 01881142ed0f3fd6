"""One API, one name in four places: message, handler, handler test, row of docs/apis.md."""

import re

from tests.law import source


def _stems(folder: str, prefix: str = "") -> set[str]:
    names = {path.stem for path in (source.ROOT / folder).glob(f"{prefix}*.py")}
    return {name.removeprefix(prefix) for name in names} - {"__init__", "conftest"}


HANDLERS = _stems("ottla/server/handlers")


def test_every_handler_has_messages_of_its_name() -> None:
    """A handler answers the API that its name says."""
    assert HANDLERS, "no handlers found"
    assert not HANDLERS - _stems("ottla/wire/messages")


def test_every_handler_has_a_test_of_its_name() -> None:
    """tests/handlers/test_<api>.py holds what the API promises."""
    assert not HANDLERS - _stems("tests/handlers", "test_")


def test_every_handler_test_has_a_handler() -> None:
    """A test file named for an API tests that API's handler."""
    assert not _stems("tests/handlers", "test_") - HANDLERS


def test_every_handler_has_its_row_in_the_list_of_apis() -> None:
    """docs/apis.md names each API that the broker answers."""
    rows = (source.ROOT / "docs/apis.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"handlers/(\w+)\.py", rows))
    assert listed == HANDLERS
