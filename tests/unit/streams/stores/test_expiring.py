"""A store with a time to live expires entries in stream time."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ottla.streams import Processor, Record, Serdes, Stores, Topology, TopologyTestDriver
from ottla.streams.serdes import DefaultSerdes

_TTL = 10


class Dedup(Processor[Any, Any, Any, Any]):
    """Forward a key only once within the time to live."""

    stores = (Stores.key_value("seen", Serdes.string(), Serdes.string(), ttl=_TTL),)

    def process(self, record: Record[Any, Any]) -> None:
        """Forward the record unless its key is in the store."""
        if self.context.store("seen").put_if_absent(record.key, "x") is None:
            self.context.forward(record)


def test_an_entry_is_visible_until_it_expires() -> None:
    """The changelog contains the expiry before the next write."""
    text = Serdes.string()
    topology = Topology().add_source("s", "in", key=text, value=text)
    topology.add_processor("p", Dedup, "s").add_sink("o", "out", "p", key=text, value=text)
    with TopologyTestDriver(topology, application_id="app") as driver:
        topic = driver.create_input_topic("in", text, text)
        for timestamp in (0, 9, 10, 15, 20):
            topic.pipe_input("a", "v", timestamp)
        out = driver.create_output_topic("out", text, text).read_records_to_list()
        log = driver.create_output_topic("app-seen-changelog", text, text)
        assert [record.timestamp for record in out] == [0, 10, 20]
        assert log.read_values_to_list() == ["x", None, "x", None, "x"]


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.sampled_from("abc"), st.sampled_from(("put", "delete")))
    )
)
def test_a_store_expires_entries_like_a_model(steps: list[tuple[int, str, str]]) -> None:
    """The live entries are always those that were put within the time to live."""
    now = 0
    builder = Stores.key_value("s", Serdes.string(), Serdes.integer(), ttl=_TTL)
    store: Any = builder.build(DefaultSerdes(), None, stream_time=lambda: now)
    model: dict[str, int] = {}
    for step, key, action in steps:
        now += step
        model = {each: at for each, at in model.items() if at + _TTL > now}
        if action == "put":
            store.put(key, now)
            model[key] = now
        else:
            assert store.delete(key) == model.pop(key, None)
        assert dict(store.all()) == model
        assert [store.get(each) for each in "abc"] == [model.get(each) for each in "abc"]
    restored: Any = builder.build(DefaultSerdes(), None, stream_time=lambda: now)
    for key, at in model.items():
        restored.restore(key.encode(), at.to_bytes(4, "big"), at)
    assert dict(restored.all()) == model
