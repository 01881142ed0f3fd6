"""Compare the names of Kafka Streams' API with ours in snake_case.

A class of Kafka corresponds to one or more of our classes (`OURS`). For a missing name,
`docs/coming-from-java.md` describes the alternative (`SAID`: the Java name is in its table).
Otherwise the header of a module lists it as unsupported (`NOT_DONE`: in the text after "Not
done:"). Missing classes are covered in the same two ways.
"""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla import streams
from ottla.streams.driver.mock_context import (
    CapturedForward,
    CapturedPunctuator,
    MockProcessorContext,
)
from ottla.streams.driver.test_driver import TestInputTopic, TestOutputTopic, TestRecord
from ottla.streams.model import records
from ottla.streams.model.spelling import snake_case
from ottla.streams.options import dsl_options
from ottla.streams.processor import api
from ottla.streams.processor.punctuators import Schedule
from ottla.streams.queries import requests, store_views
from ottla.streams.serdes import named
from ottla.streams.settings import config, handlers
from ottla.streams.stores import key_value, session, versioned, window
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.task.node_context import NodeContext
from ottla.streams.topology import describe
from tests.streams.api.record import NAMES

ROOT = Path(__file__).parents[3]


def java_names() -> dict[str, list[str]]:
    """Return Kafka's names by class; the classes are without packages."""
    entries: dict[str, list[str]] = {}
    for line in NAMES.read_text(encoding="utf-8").splitlines():
        kind, _, names = line.partition(":")
        # The old Processor API has classes with the same names.
        old = kind in ("processor.ProcessorContext", "processor.MockProcessorContext")
        if not (old or kind.startswith("processor.MockProcessorContext$")):
            entries.setdefault(re.sub(r"^[a-z.]+\.", "", kind), []).extend(names.split())
    return entries


def python_names(kind: Any) -> set[str]:
    """Return the public names of a class of ours, including fields."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    own = getattr(kind, "__annotations__", {})
    return {*dir(kind), *own, *(field.name for field in fields)}


def forms(name: str) -> Iterator[str]:
    """Yield the possible names here: a getter may be an attribute, and a time may have a unit."""
    plain = snake_case(name)
    yield from (name, plain, plain.removeprefix("get_"), plain.removeprefix("is_"), f"{plain}_ms")


def module_headers() -> str:
    """Return all parts of module headers that follow "Not done:"."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "ottla/streams").rglob("*.py"))
    return "\n".join(part.split('"""')[0] for text in texts for part in text.split("Not done:")[1:])


def page_table() -> str:
    """Return the page with the table for Java users."""
    return (ROOT / "docs/coming-from-java.md").read_text(encoding="utf-8")


OURS: dict[str, tuple[Any, ...]] = {
    **{
        name: (getattr(streams, name),)
        for name in java_names()
        if isinstance(getattr(streams, name, None), type)
    },
    "KafkaStreams": (streams.KafkaStreams,),
    "KafkaStreams$State": (streams.State,),
    "StreamsMetadata": (streams.StreamsMetadata,),
    "KeyQueryMetadata": (streams.KeyQueryMetadata,),
    "LagInfo": (streams.LagInfo,),
    "TaskMetadata": (streams.TaskMetadata,),
    "ThreadMetadata": (streams.ThreadMetadata,),
    "StandbyUpdateListener$SuspendReason": (streams.SuspendReason,),
    "TopologyDescription": (describe.TopologyDescription,),
    "TopologyDescription$GlobalStore": (describe.GlobalStore,),
    "TopologyDescription$Subtopology": (describe.Subtopology,),
    **{
        f"TopologyDescription${kind}": (describe.NodeDescription,)
        for kind in ("Node", "Processor", "Sink", "Source")
    },
    "AutoOffsetReset": (dsl_options.AutoOffsetReset,),
    "ContextualFixedKeyProcessor": (api.FixedKeyProcessor,),
    "ContextualProcessor": (api.Processor,),
    "ConnectedStoreProvider": (api.ProcessorSupplier,),
    "Cancellable": (Schedule,),
    "DefaultProductionExceptionHandler": (handlers.DefaultProductionExceptionHandler,),
    "ErrorHandlerContext": (handlers.ErrorHandlerContext,),
    "FailureReason": (requests.FailureReason,),
    "FixedKeyProcessorContext": (NodeContext, streams.ProcessorContext),
    "FixedKeyRecord": (records.Record,),
    "KeyValueStore": (key_value.KeyValueStore,),
    "MockProcessorContext": (MockProcessorContext(),),
    "MockProcessorContext$CapturedForward": (CapturedForward,),
    "MockProcessorContext$CapturedPunctuator": (CapturedPunctuator,),
    "PositionBound": (requests.PositionBound,),
    "ProcessingContext": (streams.ProcessorContext,),
    "ProcessorContext": (NodeContext, streams.ProcessorContext),
    "QueryResult": (requests.QueryResult,),
    "QueryableStoreTypes": (requests.QueryableStoreTypes,),
    "ReadOnlyKeyValueStore": (key_value.KeyValueStore, store_views.KeyValueView),
    "ReadOnlySessionStore": (session.SessionStore, store_views.SessionView),
    "ReadOnlyWindowStore": (window.WindowStore, store_views.WindowView),
    "RecordContext": (api.RecordContext,),
    "ResultOrder": (requests.ResultOrder,),
    "Serdes": (named.Serdes,),
    "SessionStore": (session.SessionStore,),
    "StateQueryRequest$InStore": (requests.InStore,),
    "StateQueryResult": (requests.StateQueryResult,),
    "StoreBuilder": (StoreBuilder,),
    "StreamsConfig": (config.StreamsConfig,),
    "Suppressed$BufferConfig": (streams.BufferConfig,),
    "TestInputTopic": (TestInputTopic,),
    "TestOutputTopic": (TestOutputTopic,),
    "TestRecord": (TestRecord,),
    "TimestampedKeyValueStore": (key_value.TimestampedKeyValueStore,),
    "TimestampedWindowStore": (window.TimestampedWindowStore,),
    "VersionedKeyValueStore": (versioned.VersionedKeyValueStore,),
    "Window": (records.TimeWindow, records.SessionWindow),
    "WindowStore": (window.WindowStore,),
    "WindowedSerdes": (named.WindowedSerdes,),
    **{
        f"{kind}ExceptionHandler$Result": (handlers.Result,)
        for kind in ("Deserialization", "Processing", "Production")
    },
    **{
        f"{kind}ExceptionHandler$Response": (handlers.Response,)
        for kind in ("Deserialization", "Processing", "Production")
    },
    **{
        name: (getattr(handlers, name),)
        for name in java_names()
        if name.startswith("LogAnd") and name.endswith("ExceptionHandler")
    },
    "ProductionExceptionHandler$SerializationExceptionOrigin": (handlers.SerializationOrigin,),
}


# Names with another form here, as regular expressions, and the word in the table that covers them.
SAID: dict[str, str] = {
    "Aggregator|ForeachAction|Initializer|KeyValueMapper|Merger|Predicate|Reducer": "`Aggregator`",
    "ValueJoiner(WithKey)?|ValueMapper(WithKey)?": "`ValueMapper`",
    "Punctuator|TimestampExtractor|TopicNameExtractor|StreamPartitioner": "`Punctuator`",
    r"KafkaStreams\$StateListener": "`StateListener`",
    "StreamsUncaughtExceptionHandler": "`StreamsUncaughtExceptionHandler`",
    r".*\$StreamThreadExceptionResponse": "`StreamThreadExceptionResponse`",
    "(KeyValue|Window|Session|Versioned)BytesStoreSupplier|StoreSupplier": "`StoreSupplier`",
    r"Materialized\$StoreType|BuiltInDslStoreSuppliers.*": "`BuiltInDslStoreSuppliers`",
    "Windows|JoinWindows.windowsFor": "`Windows` is a word",
    r"Suppressed\$(Eager|Strict)BufferConfig": "`StrictBufferConfig`",
    r"EmitStrategy\$StrategyType|EmitStrategy.(log|type)": "`EmitStrategy.StrategyType`",
    r"(Time|Session)Windowed(S|Des)erializer|WindowedSerdes\$.*": "`TimeWindowedSerializer`",
    "Transformer(Supplier)?|ValueTransformer(Supplier)?": "`ValueTransformer`",
    "ForeachProcessor": "`ForeachProcessor`",
    "To": "To.child",
    "WindowStoreIterator|VersionedRecordIterator": "`WindowStoreIterator`",
    "VersionedKeyValueStore.PUT_RETURN_CODE_.*": "PUT_RETURN_CODE_NOT_PUT",
    r"Topology\$AutoOffsetReset": "`Topology.AutoOffsetReset`",
    "(Deserialization|Processing|Production)ExceptionHandler": "`ProductionExceptionHandler`",
    # The responses of handlers before Kafka had the class Response.
    r".*HandlerResponse": "`Response.resume()`",
    ".*ExceptionHandler.configure": "`configure`",
    "TopologyException|StreamsException|.*Exception": "`StreamsError`",
    "QueryableStoreTypes.*|Query": "QueryableStoreType",
    # Getters of values that the caller itself has set.
    "StateQueryRequest.(executionInfoEnabled|getPositionBound|isAllPartitions)": "withQuery",
    "WindowRangeQuery.getTime(From|To)": "withQuery",
    "Joined.gracePeriod": "a getter",
    "ValueAndTimestamp.makeAllowNullable": "a getter",
}

# Unsupported names, as regular expressions, and the word in a module's header that covers them.
NOT_DONE: dict[str, str] = {
    ".*WithHeaders.*|ValueTimestampHeaders|HeadersBytesStore(Supplier)?": "`…WithHeaders`",
    "Stores.lruMap": "`lruMap`",
    "StateStore|StateStoreContext|StateSerdes|(Batching)?StateRestoreCallback": "`StateSerdes`",
    "VersionedBytesStore|TimestampedBytesStore|CommitCallback": "`CommitCallback`",
    "Dsl(KeyValue|Session|Window)Params|DslStoreSuppliers": "`DslStoreSuppliers`",
    "DslStoreFormat": "`DslStoreFormat`",
    "RocksDBConfigSetter": "`RocksDBConfigSetter`",
    "(Mock)?Process(ing|or)Context.(taskId|stateDir|metrics|appConfigs.*)|TaskId": "`taskId`",
    "MockProcessorContext.(getStateStoreContext|recordCollector)": "`StateStoreContext`",
    "ErrorHandlerContext.taskId": "`taskId` of an error",
    "Production.*(RETRY|retry)": "`RETRY`",
    "ProcessorWrapper|Wrapped(FixedKey)?ProcessorSupplier": "`ProcessorWrapper`",
    "InternalFixedKeyRecordFactory": "`ProcessorWrapper`",
    "Position|PositionBound.(at|position)|QueryConfig": "`PositionBound.at`",
    "QueryResult.(addExec|for|notUp|setPos|getExec|getPos).*": "`getExecutionInfo`",
    "StateQueryResult.(addResult|getPosition|setGlobalResult)": "`getPosition`",
    "FailureReason.(NOT_ACTIVE|NOT_PRESENT|NOT_UP_TO_BOUND|STORE_EXCEPTION)": "`PositionBound.at`",
    "QueryableStoreType": "`QueryableStoreType`",
    "StreamsConfig.*": "options of Kafka's clients",
    "TopologyConfig.*": "`TopologyConfig`",
    "KafkaClientSupplier|GroupProtocol": "`KafkaClientSupplier`",
    "KafkaStreams.(addStreamThread|removeStreamThread)": "`addStreamThread`",
    "HostInfo|StreamsMetadata.(hostInfo|port|standby.*|topicPartitions)": "`HostInfo`",
    "(KafkaStreams|TopologyTestDriver).metrics|StreamsMetrics": "`metrics`",
    "ThreadMetadata..*ClientIds?": "client ids of `ThreadMetadata`",
    "TaskMetadata.(endOffsets|timeCurrentIdlingStarted)": "`endOffsets`",
    "KafkaStreams.clientInstanceIds|ClientInstanceIds": "`clientInstanceIds`",
    r"(KafkaStreams\$)?CloseOptions.*": "`CloseOptions`",
    r"KafkaStreams\$State..*": "`pause`",
}


def missing() -> Iterator[str]:
    """Yield each class, and each name of a class, that does not exist here in snake_case."""
    for kind, names in sorted(java_names().items()):
        if kind not in OURS:
            yield kind
            continue
        for name in sorted(set(names)):
            known = (python_names(line) for line in OURS[kind])
            if not all(known_names.intersection(forms(name)) for known_names in known):
                yield f"{kind}.{name}"


def covered_by(name: str, covered: dict[str, str]) -> str | None:
    """Return the word that covers a name, or None."""
    return next((word for known, word in covered.items() if re.fullmatch(known, name)), None)


if __name__ == "__main__":
    for each in missing():
        where = covered_by(each, SAID) or covered_by(each, NOT_DONE)
        print(f"{each}: {where or 'MISSING'}")
