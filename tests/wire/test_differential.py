"""Our codec is compared with kio and kafka-python on random messages, for every message and
version.
"""

import pytest

from ottla.wire import schema
from tests.wire import foreign, samples

CLASSES = samples.MESSAGES + samples.STORED
MESSAGES_PER_VERSION = 8


@pytest.mark.parametrize("cls", CLASSES, ids=samples.version_id)
def test_kio_encodes_and_decodes_the_same(cls: type[schema.Message]) -> None:
    """The encoders of kio and Ottla return the same bytes, and their decoders the same values."""
    sampler = samples.Sampler(11, portable=True)
    if foreign.kio_class(cls, cls.MAX_VERSION) is None:
        assert cls in samples.STORED or cls.__name__.startswith(foreign.WITH_ZOOKEEPER)
        pytest.skip("kio has no such message")
    for version in samples.versions(cls):
        for _ in range(MESSAGES_PER_VERSION):
            message = sampler.message(cls, version)
            data = schema.encode(message, version)
            assert foreign.encode_with_kio(message, version) == data
            decoded = foreign.decode_with_kio(cls, version, data)
            assert decoded == foreign.to_kio(message, type(decoded), version)


@pytest.mark.parametrize("cls", samples.MESSAGES, ids=samples.version_id)
def test_kafka_python_encodes_and_decodes_the_same(cls: type[schema.Message]) -> None:
    """The encoders return the same bytes, also after kafka-python has decoded them."""
    foreign_class = foreign.kafka_python_class(cls)
    if foreign_class is None:
        assert cls.__name__.startswith(foreign.NOT_IN_KAFKA_PYTHON)
        pytest.skip("kafka-python has no such message")
    sampler = samples.Sampler(12, portable=True)
    for version in samples.versions(cls):
        for _ in range(MESSAGES_PER_VERSION):
            message = sampler.message(cls, version)
            data = schema.encode(message, version)
            assert foreign.encode_with_kafka_python(message, version) == data
            if cls.__name__ in foreign.NOT_RECODED_BY_KAFKA_PYTHON:
                continue
            assert foreign.recode_with_kafka_python(cls, version, data) == data
