"""State on disk is continued only if its changelogs still have the records after its positions."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ottla.client.records import TopicPartition
from ottla.streams import Processor, Record, Serdes, Stores, StreamsBuilder
from ottla.streams.layout.layout import Application
from ottla.streams.local.disk.database import SavedState
from ottla.streams.local.disk.directory import StateDirectory
from ottla.streams.local.layout import TaskId, TaskLayout, task_layout
from ottla.streams.local.replicas.task_states import TaskStates, why_useless
from ottla.streams.local.state import TaskState
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.stores.ordered import open_memory
from ottla.streams.task.task import TaskSettings

_DEFAULTS = DefaultSerdes(Serdes.string(), Serdes.string())
_LOG = TopicPartition("log", 3)
_CHANGELOG = TopicPartition("app-table-changelog", 0)
_TASK = TaskId(0, 0)
_DAY_MS = 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("position", "span", "age_ms", "reason"),
    [
        (5, (0, 5), 2 * _DAY_MS, ""),
        (5, (0, 9), _DAY_MS, ""),
        (5, (0, 9), _DAY_MS + 1, "not read for more than a day"),
        (5, (0, 4), 0, "log-3 ends at 4, before its position 5"),
        (5, (6, 9), 0, "log-3 begins at 6, after its position 5"),
        (5, (5, 9), 0, ""),
    ],
)
def test_positions_that_cannot_be_continued(
    position: int, span: tuple[int, int], age_ms: int, reason: str
) -> None:
    """A changelog may have lost its end or its start, or tombstones."""
    saved = SavedState("these", {"log": position}, {}, 1_000)
    assert reason in why_useless(saved, "these", {_LOG: span}, 1_000 + age_ms)
    assert bool(reason) == bool(why_useless(saved, "these", {_LOG: span}, 1_000 + age_ms))


def test_state_of_other_changelogs_is_useless() -> None:
    """A topic that was created again, and a store of another form, have another fingerprint."""
    saved = SavedState("these", {"log": 5})
    assert why_useless(saved, "those", {_LOG: (0, 5)}, 0).startswith("its changelogs were created")
    assert why_useless(SavedState(), "those", {_LOG: (0, 5)}, 0) == ""


def _layout(store: StoreBuilder) -> TaskLayout:
    builder = StreamsBuilder()
    builder.add_state_store(store)

    class Keep(Processor[str, str, str, str]):
        """A processor that is connected to the store."""

        def process(self, record: Record[str, str]) -> None:
            """Do nothing."""

    builder.stream("in").process(Keep, store.name)
    application = Application(builder.build(), TaskSettings("app", _DEFAULTS))
    return task_layout(application, {"in": 1})


class Ids:
    """Ids of topics; a topic that is created again gets another one."""

    def __init__(self) -> None:
        self.generation = 0

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic."""
        return f"{topic}{self.generation}"


class Worker:
    """The states of a worker over a directory."""

    def __init__(self, path: Path, store: StoreBuilder | None = None) -> None:
        self.ids = Ids()
        self.layout = _layout(store or Stores.key_value("table"))
        self._directory = StateDirectory(str(path))
        self._directory.open()
        self.states = TaskStates(open_memory, frozenset(), _DEFAULTS, self._directory, self.ids)

    def open(self, end: int) -> TaskState:
        """Open the task's state; its changelog has records up to an offset."""
        state = self.states.open(_TASK, self.layout, {_CHANGELOG: (0, end)}, _ignore)
        assert state is not None
        return state

    def restore(self, state: TaskState, count: int) -> None:
        """Apply records of the changelog from the state's position."""
        first = state.positions[_CHANGELOG]
        for offset in range(first, first + count):
            state.restore("table", b"k%d" % offset, b"v", 0)
        state.positions[_CHANGELOG] = first + count


def _ignore(
    task: TaskId, topics: Mapping[str, str], store: str, key: bytes, value: bytes | None
) -> None:
    assert (task, topics, store, key, value) is None


def test_a_state_continues_at_its_last_batch(tmp_path: Path) -> None:
    """Entries and position are those of the last batch; later ones are restored again."""
    worker = Worker(tmp_path)
    state = worker.open(9)
    assert state.positions == {_CHANGELOG: 0}
    worker.restore(state, 4)
    state.save()
    worker.restore(state, 2)
    worker.states.close(state)
    again = worker.open(9)
    assert again.positions == {_CHANGELOG: 4}
    assert len(again.open_map("table")) == 4
    worker.states.close(again)


def test_a_changelog_that_was_created_again_discards_the_state(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The topic has the same name and more records; its id is another one."""
    worker = Worker(tmp_path)
    state = worker.open(4)
    worker.restore(state, 4)
    state.save()
    worker.states.close(state)
    worker.ids.generation = 1
    again = worker.open(9)
    assert again.positions == {_CHANGELOG: 0}
    assert len(again.open_map("table")) == 0
    assert "were created again" in caplog.text
    worker.states.close(again)


def test_a_store_in_memory_is_not_on_disk(tmp_path: Path) -> None:
    """It is restored from the start of its changelog each time."""
    supplier = Stores.in_memory_key_value_store("table")
    worker = Worker(tmp_path, Stores.key_value_store_builder(supplier))
    for _ in range(2):
        state = worker.open(4)
        assert state.positions == {_CHANGELOG: 0}
        worker.restore(state, 4)
        state.save()
        worker.states.close(state)
    assert list(tmp_path.glob("*/*.db")) == []


def test_a_task_is_open_once(tmp_path: Path) -> None:
    """Another worker of the process waits until the state is closed."""
    worker = Worker(tmp_path)
    state = worker.open(0)
    spans = {_CHANGELOG: (0, 0)}
    assert worker.states.open(_TASK, worker.layout, spans, _ignore) is None
    worker.states.close(state)
    worker.states.close(worker.open(0))


def test_a_window_store_knows_its_segments_after_a_restart(tmp_path: Path) -> None:
    """The time of the store, and its segments, are part of each batch."""
    store = Stores.window("table", "1 h", "1 min", Serdes.string(), Serdes.string())
    worker = Worker(tmp_path, store)
    state = worker.open(9)
    builder = worker.layout.sub_topologies[0].topology.stores["table"]
    window: Mapping[str, object] = {"table": builder.build(_DEFAULTS, None, state.open_map)}
    state.hand_over(dict(window))  # type: ignore[arg-type]
    for minute in range(3):
        window["table"].put("a", f"{minute}", minute * 3_600_000)  # type: ignore[attr-defined]
    state.positions[_CHANGELOG] = 3
    state.save()
    worker.states.close(state)
    again = worker.open(9)
    store_again = builder.build(_DEFAULTS, None, again.open_map)
    again.hand_over({"table": store_again})
    fetched = store_again.fetch("a", 0, 9_000_000)  # type: ignore[attr-defined]
    assert [(row.key, row.value) for row in fetched] == [(7_200_000, "2")]
    worker.states.close(again)
