"""The contender `quix`: the same topologies with Quix Streams, in a Python that does not have
Ottla.

Runs until it is terminated: `python streams_quix.py BOOTSTRAP TOPOLOGY APPLICATION SOURCE TABLE
SINK FOLDER`.
"""

import operator
import sys
from datetime import timedelta
from typing import Any

from quixstreams import Application, State  # type: ignore[import-not-found]
from quixstreams.dataframe import StreamingDataFrame  # type: ignore[import-not-found]
from quixstreams.models.serializers import (  # type: ignore[import-not-found]
    SerializationContext,
    Serializer,
)


class _Second(Serializer):  # type: ignore[misc]
    """Writes the second element of a pair; the first one is the key."""

    def __call__(self, value: tuple[str, str], ctx: SerializationContext) -> bytes:
        return value[1].encode()


def _stateless(values: StreamingDataFrame) -> StreamingDataFrame:
    return values.filter(lambda value: value[0] != "b").apply(str.upper)


def _numbered(_value: str, state: State) -> str:
    number = state.get("number", 0) + 1
    state.set("number", number)
    return str(number)


def _named(value: dict[str, Any], key: Any, _time: int, _headers: Any) -> tuple[str, str]:
    name = key.decode() if isinstance(key, bytes) else key
    return f"{name}@{value['start']}", str(value["value"])


def _windowed_count(values: StreamingDataFrame) -> StreamingDataFrame:
    window = values.tumbling_window(timedelta(seconds=10), grace_ms=timedelta(seconds=5)).count()
    return window.current().apply(_named, metadata=True)


def main(words: list[str]) -> None:
    """Run one topology."""
    bootstrap, topology, application, source, table, sink, folder = words
    app = Application(
        broker_address=bootstrap,
        consumer_group=application,
        auto_offset_reset="earliest",
        state_dir=folder,
        loglevel="WARNING",
    )
    text = {"key_deserializer": "str", "value_deserializer": "str"}
    values = app.dataframe(app.topic(source, **text))
    if topology == "windowed_count":
        out = app.topic(sink, key_serializer="str", value_serializer=_Second())
        _windowed_count(values).to_topic(out, key=operator.itemgetter(0))
    else:
        out = app.topic(sink, key_serializer="str", value_serializer="str")
        if topology == "table_join":
            right = app.dataframe(app.topic(table, **text))
            created = values.join_asof(right, on_merge=lambda value, other: value + other[:10])
        elif topology in ("count", "processor"):
            created = values.apply(_numbered, stateful=True)
        else:
            created = _stateless(values)
        created.to_topic(out)
    app.run()


if __name__ == "__main__":
    main(sys.argv[1:])
