"""Checks of an application's topics on the broker, before the application starts."""

from collections.abc import Mapping

from ottla.base.errors import ApiError
from ottla.client.admin.configs import Resource, ResourceType, describe_config
from ottla.client.admin.topics import list_topics
from ottla.client.brokers import Brokers
from ottla.streams.model.errors import TopologyError
from ottla.streams.settings.handlers import DefaultProductionExceptionHandler, ExceptionHandlers
from ottla.streams.topology.topology import Sink, Source, Topology

_CREATES = "auto.create.topics.enable"


def check_topics(
    brokers: Brokers, topology: Topology, application_id: str, handlers: ExceptionHandlers
) -> None:
    """Check the source and sink topics, and the partition counts of joined topics.

    Raises TopologyError if a topic does not exist, or if topics that are joined differ in their
    number of partitions. A sink topic may be missing if the brokers create topics automatically, or
    if the application has a custom production exception handler, which then handles each record.
    """
    counts = {listed.name: len(listed.partitions) for listed in list_topics(brokers)}
    _check_exist("source", _missing_sources(topology, counts), application_id)
    check_sinks(brokers, topology, application_id, counts, handlers)
    topology.check_copartitioning(counts)


def check_sinks(
    brokers: Brokers,
    topology: Topology,
    application_id: str,
    counts: Mapping[str, int],
    handlers: ExceptionHandlers,
) -> None:
    """Raise TopologyError if a sink topic does not exist and will not be created automatically."""
    missing = _missing_sinks(topology, counts)
    if not missing or not isinstance(handlers.production, DefaultProductionExceptionHandler):
        return
    if not _creates_topics(brokers):
        _check_exist("sink", missing, application_id)


def _missing_sources(topology: Topology, counts: Mapping[str, int]) -> list[str]:
    read = {
        topic
        for node in topology.nodes.values()
        if isinstance(node, Source)
        for topic in node.topics
    }
    return sorted(read - set(topology.internal_topics) - set(counts))


def _missing_sinks(topology: Topology, counts: Mapping[str, int]) -> list[str]:
    """Return the sink topics that do not exist and are not internal topics of the application."""
    written = {
        node.topic
        for node in topology.nodes.values()
        if isinstance(node, Sink) and isinstance(node.topic, str)
    }
    return sorted(written - set(topology.internal_topics) - set(counts))


def _check_exist(kind: str, missing: list[str], application_id: str) -> None:
    if not missing:
        return
    is_one = len(missing) == 1
    subject = f"topic {missing[0]} is" if is_one else f"topics {', '.join(missing)} are"
    raise TopologyError(
        f"{kind} {subject} not there: create {'it' if is_one else 'them'} before the application "
        f"{application_id} starts (ottla topic create {missing[0]})"
    )


def _creates_topics(brokers: Brokers) -> bool:
    """Return True if the brokers create topics automatically, or if they do not report it."""
    broker, *_ = brokers.retry(lambda: brokers.metadata([])).brokers
    resource = Resource(ResourceType.BROKER, str(broker.node_id))
    try:
        result = describe_config(brokers, resource, names=[_CREATES])
    except ApiError:
        return True
    return all(config.value == "true" for config in result if config.name == _CREATES)
