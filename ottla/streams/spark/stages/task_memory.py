"""The state of a task that is kept between micro-batches in addition to the maps of its stores.

A task lives for one micro-batch. Its stream time, its punctuators, the stores' knowledge of time,
and the fields of processors that changed since `init` are stored for the next one, so that
processors behave as in one long-lived task. A field that cannot be pickled, such as a connection,
is created again by `init`. So is a field of more than a megabyte that is changed in place. State
that must not be lost belongs in a store.
"""

import io
import pickle
from typing import Any

from pyspark import cloudpickle

from ottla.streams.model.packing import pack, unpack
from ottla.streams.processor.api import PunctuationType
from ottla.streams.task.task import Schedule, Task

# The exceptions that pickling raises for objects it cannot pickle; classes may raise any of them.
_NOT_PICKLED = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError)

_Field = tuple[str, str]

# `init` loads fields this large; comparing them would pickle them in every micro-batch.
_COMPARED_BYTES = 1 << 20


class _Bounded(io.BytesIO):
    """A file of limited size; writing more raises ValueError."""

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > _COMPARED_BYTES:
            raise ValueError("too large to be compared")
        return super().write(data)


class TaskMemory:
    """The memory of one task.

    Make it of a task whose processors have just been initialised.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._parts = _parts(task)
        self._names = {id(part): name for name, part in self._parts.items()}
        self._initial = {
            field: (value, self._pickled(value)) for field, value in self._fields().items()
        }

    def _fields(self) -> dict[_Field, Any]:
        return {
            (name, field): value
            for name, processor in self._task.processors.items()
            for field, value in vars(processor).items()
            if id(value) not in self._names
        }

    def _pickled(self, value: Any) -> bytes | None:
        target = _Bounded()
        try:
            _Pickler(target, self._names).dump(value)
        except _NOT_PICKLED:
            return None
        return target.getvalue()

    def remember(self) -> bytes:
        """Return the memory as bytes."""
        task = self._task
        later = self._schedules_later()
        return pack(
            {
                "stream_time": task.stream_time,
                "stores": {name: store.remember() for name, store in task.stores.items()},
                "fields": self._changed_fields(),
                "schedules": self._schedules(later),
            }
        )

    def _changed_fields(self) -> dict[_Field, bytes]:
        results = {}
        for field, value in self._fields().items():
            before = self._initial.get(field)
            pickled = self._pickled(value)
            if pickled is None and (before is None or value is not before[0]):
                pickled = self._pickled_by_value(value)
            if pickled is not None and (before is None or pickled != before[1]):
                results[field] = pickled
        return results

    def _pickled_by_value(self, value: Any) -> bytes | None:
        """Pickle functions and classes of the user's main program, which plain pickling cannot."""
        target = io.BytesIO()
        try:
            _ByValuePickler(target, self._names).dump(value)  # type: ignore[no-untyped-call]
        except _NOT_PICKLED:
            return None
        return target.getvalue()

    def _schedules_later(self) -> dict[tuple[Any, ...], bytes]:
        """Name the punctuators that were added since `init`, for fields that refer to one; return
        their functions.
        """
        # Start again each time: a cancelled punctuator has no name, and is stored by value.
        for name in [part for part in self._parts if part[0] == "later"]:
            del self._names[id(self._parts.pop(name))]
        results: dict[tuple[Any, ...], bytes] = {}
        for schedule in (
            punctuator for kind in PunctuationType for punctuator in self._task.punctuators[kind]
        ):
            callback = (
                None if id(schedule) in self._names else self._pickled_by_value(schedule.callback)
            )
            if callback is not None:
                name = "later", len(results)
                results[name] = callback
                self._parts[name], self._names[id(schedule)] = schedule, name
        return results

    def _schedules(self, later: dict[tuple[Any, ...], bytes]) -> list[tuple[Any, ...]]:
        schedules: list[tuple[Any, ...]] = []
        for punctuation in PunctuationType:
            for punctuator in self._task.punctuators[punctuation]:
                name = self._names.get(id(punctuator))
                if name is not None:
                    fields = (
                        punctuator.node,
                        punctuation.name,
                        punctuator.due,
                        punctuator.interval_ms,
                    )
                    schedules.append((name, later.get(name), *fields))
        return schedules

    def recall(self, remembered: bytes) -> None:
        """Restore the state that `remember` returned."""
        task, document = self._task, unpack(remembered)
        task.stream_time = document["stream_time"]
        for name, store in document["stores"].items():
            task.stores[name].recall(store)
        results: dict[PunctuationType, list[Schedule]] = {
            punctuation_type: [] for punctuation_type in PunctuationType
        }
        for name, callback, node, punctuation, due_ms, interval_ms in document["schedules"]:
            clock = PunctuationType[punctuation]
            if name not in self._parts:
                schedule = Schedule(node, clock, due_ms, interval_ms, self._unpickled(callback))
                self._parts[name] = schedule
                self._names[id(schedule)] = name
            else:
                schedule = self._parts[name]
                schedule.due = due_ms
            results[clock].append(schedule)
        for clock, schedules in results.items():
            task.punctuators[clock].replace(schedules)
        for (name, field), pickled in document["fields"].items():
            setattr(task.processors[name], field, self._unpickled(pickled))

    def _unpickled(self, pickled: bytes) -> Any:
        return _Unpickler(io.BytesIO(pickled), self._parts).load()


def _parts(task: Task) -> dict[tuple[Any, ...], Any]:
    """Return the parts of a task, by names that are the same in every task of a topology."""
    parts: dict[tuple[Any, ...], Any] = {("task",): task}
    for name, processor in task.processors.items():
        parts["processor", name] = processor
        parts["context", name] = task.contexts[name]
        parts["supplier", name] = getattr(task.topology.nodes[name], "supplier", None)
    for name, store in task.stores.items():
        parts["store", name] = store
    for punctuation in PunctuationType:
        numbers: dict[str, int] = {}
        for punctuator in task.punctuators[punctuation]:
            number = numbers[punctuator.node] = numbers.get(punctuator.node, 0) + 1
            parts["schedule", punctuation.name, punctuator.node, number] = punctuator
    return parts


class _Pickler(pickle.Pickler):
    """Pickles references to the parts of a task by name."""

    def __init__(self, target: io.BytesIO, names: dict[int, tuple[Any, ...]]) -> None:
        super().__init__(target, 5)
        self._names = names

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        """Return the name of a part; None for other objects."""
        return self._names.get(id(value))


class _ByValuePickler(cloudpickle.CloudPickler):
    """The same, for functions and classes that no module defines."""

    def __init__(self, target: io.BytesIO, names: dict[int, tuple[Any, ...]]) -> None:
        super().__init__(target, 5)  # type: ignore[no-untyped-call]
        self._names = names

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        """Return the name of a part; None for other objects."""
        return self._names.get(id(value))


class _Unpickler(pickle.Unpickler):
    """Replaces names by the parts of the current task."""

    def __init__(self, source: io.BytesIO, parts: dict[tuple[Any, ...], Any]) -> None:
        super().__init__(source)
        self._parts = parts

    def persistent_load(self, name: tuple[Any, ...]) -> Any:
        """Return a part by its name."""
        return self._parts[name]
