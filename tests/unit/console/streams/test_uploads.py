"""Uploaded topologies."""

import pytest

from ottla.base.errors import ConfigError
from ottla.console.accounts.database import Database
from ottla.console.streams import uploads
from ottla.console.streams.uploads import TopologyUploads
from tests.unit.console.clocks import SetClock
from tests.unit.console.streams.test_describe_text import WORDS


def test_a_description_is_stored_replaced_and_deleted() -> None:
    """Clusters are separate."""
    store = TopologyUploads(Database(":memory:"), SetClock())
    store.save("a", "counter", WORDS)
    store.save("a", "counter", WORDS.replace("count", "sum"))
    result = store.find("a", "counter")
    assert result is not None
    assert "Processor: sum (" in result.text
    assert store.find("b", "counter") is None
    assert store.applications("a") == ["counter"]
    store.delete("a", "counter")
    with pytest.raises(ConfigError, match="no topology of 'counter'"):
        store.delete("a", "counter")


def test_only_topologies_are_stored_and_not_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that cannot be drawn is refused, and so is one more than the limit."""
    monkeypatch.setattr(uploads, "APPLICATIONS_MAX", 2)
    store = TopologyUploads(Database(":memory:"), SetClock())
    with pytest.raises(ConfigError, match="neither a sub-topology"):
        store.save("a", "counter", "hello")
    with pytest.raises(ConfigError, match="1 to 249"):
        store.save("a", "", WORDS)
    store.save("a", "one", WORDS)
    store.save("a", "two", WORDS)
    store.save("a", "two", WORDS)
    with pytest.raises(ConfigError, match="delete one"):
        store.save("a", "three", WORDS)
