"""Our codec against kio and kafka-python on random messages, for every message and version."""

import pytest
import wire_foreign
import wire_samples

from ottla.wire import schema

CLASSES = wire_samples.MESSAGES + wire_samples.STORED
MESSAGES_PER_VERSION = 8


@pytest.mark.parametrize("cls", CLASSES, ids=wire_samples.version_id)
def test_kio_encodes_and_decodes_the_same(cls: type[schema.Message]) -> None:
    """kio makes the same bytes of the same values, and the same values of our bytes."""
    sampler = wire_samples.Sampler(11, portable=True)
    if wire_foreign.kio_class(cls, cls.MAX_VERSION) is None:
        assert cls in wire_samples.STORED
        pytest.skip("kio has no such message")
    for version in wire_samples.versions(cls):
        for _ in range(MESSAGES_PER_VERSION):
            message = sampler.message(cls, version)
            data = schema.encode(message, version)
            assert wire_foreign.encode_with_kio(message, version) == data
            foreign = wire_foreign.decode_with_kio(cls, version, data)
            assert foreign == wire_foreign.to_kio(message, type(foreign), version)


@pytest.mark.parametrize("cls", wire_samples.MESSAGES, ids=wire_samples.version_id)
def test_kafka_python_encodes_and_decodes_the_same(cls: type[schema.Message]) -> None:
    """kafka-python makes the same bytes of the same values, and the same again of what it reads."""
    foreign_class = wire_foreign.kafka_python_class(cls)
    if foreign_class is None:
        assert cls.__name__.startswith("ConsumerGroup")
        pytest.skip("kafka-python has no such message")
    sampler = wire_samples.Sampler(12, portable=True)
    for version in wire_samples.versions(cls):
        for _ in range(MESSAGES_PER_VERSION):
            message = sampler.message(cls, version)
            data = schema.encode(message, version)
            assert wire_foreign.encode_with_kafka_python(message, version) == data
            if cls.__name__ in wire_foreign.NOT_RECODED_BY_KAFKA_PYTHON:
                continue
            assert wire_foreign.recode_with_kafka_python(cls, version, data) == data
