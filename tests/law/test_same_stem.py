"""An API has the same name in four places: message, handler, handler test, row of docs/apis.md."""

import re

from tests.law import source


def _stems(folder: str, prefix: str = "") -> set[str]:
    names = {path.stem for path in (source.ROOT / folder).glob(f"{prefix}*.py")}
    return {name.removeprefix(prefix) for name in names} - {"__init__", "conftest"}


HANDLERS = _stems("ottla/server/handlers")


def test_every_handler_has_messages_of_its_name() -> None:
    """A handler has the messages of its name."""
    assert HANDLERS, "no handlers found"
    assert not HANDLERS - _stems("ottla/wire/messages")


def test_every_handler_has_a_test_of_its_name() -> None:
    """The tests of an API are in tests/handlers/test_<api>.py."""
    assert not HANDLERS - _stems("tests/handlers", "test_")


def test_every_handler_test_has_a_handler() -> None:
    """A test file that is named after an API has a handler."""
    assert not _stems("tests/handlers", "test_") - HANDLERS


def test_every_handler_has_a_row_in_the_list_of_apis() -> None:
    """docs/apis.md has a row for each supported API."""
    rows = (source.ROOT / "docs/apis.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"handlers/(\w+)\.py", rows))
    assert listed == HANDLERS
