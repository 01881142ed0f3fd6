"""Measure the codec next to kio and kafka-python, interleaved: `python bench/wire.py [--rounds 7]`.

Prints microseconds per message, the best of all rounds. Every case starts from the same bytes, and
each library encodes the objects that it has decoded from them.
"""

import argparse
import importlib
import io
import json
import sys
import time
from collections.abc import Callable

from kio.serial import entity_reader, entity_writer

from ottla.wire import schema
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

KAFKA_PYTHON = {
    "Produce": "kafka.protocol.producer",
    "Fetch": "kafka.protocol.consumer",
    "Metadata": "kafka.protocol.metadata",
}
MIN_SECONDS = 0.02


def produce_request(size_bytes: int) -> ProduceRequest:
    """Return a request for one topic and one partition, with one batch."""
    partition = PartitionProduceData(index=3, records=bytes(size_bytes))
    topic = TopicProduceData(name="measurements", partition_data=[partition])
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic])


def produce_response() -> ProduceResponse:
    """Return the response to it."""
    partition = PartitionProduceResponse(index=3, base_offset=123_456, log_start_offset=0)
    topic = TopicProduceResponse(name="measurements", partition_responses=[partition])
    return ProduceResponse(responses=[topic])


def fetch_request(topics: int, partitions: int) -> FetchRequest:
    """Return a request for some partitions of some topics."""
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=[
            FetchTopic(
                topic=f"measurements-{topic}",
                partitions=[
                    FetchPartition(
                        partition=index, fetch_offset=99, log_start_offset=0, partition_max_bytes=1
                    )
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def fetch_response(size_bytes: int) -> FetchResponse:
    """Return a response with one topic, one partition and one batch."""
    partition = PartitionData(high_watermark=9, last_stable_offset=9, records=bytes(size_bytes))
    return FetchResponse(
        responses=[FetchableTopicResponse(topic="measurements", partitions=[partition])]
    )


def metadata_request(topics: int) -> MetadataRequest:
    """Return a request for some topics."""
    return MetadataRequest(topics=[MetadataRequestTopic(name=f"topic-{n}") for n in range(topics)])


def metadata_response(topics: int, partitions: int) -> MetadataResponse:
    """Return a response with three brokers and some topics with three replicas."""
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host="broker.example.org", port=9092)
            for node in range(3)
        ],
        cluster_id="4L6g3nShT-eMCtK--X86sw",
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=f"measurements-{topic}",
                topic_id=bytes(15) + b"\1",
                partitions=[
                    MetadataResponsePartition(
                        partition_index=index,
                        leader_id=index % 3,
                        leader_epoch=5,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                    )
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


CASES: tuple[tuple[str, str, schema.Message, int], ...] = (
    ("decode Produce v9, 16 KiB", "decode", produce_request(16_384), 9),
    ("decode Produce v9, 1 MiB", "decode", produce_request(1 << 20), 9),
    ("decode Produce v7, 16 KiB", "decode", produce_request(16_384), 7),
    ("decode Fetch v12, 1x1", "decode", fetch_request(1, 1), 12),
    ("decode Fetch v12, 10x12", "decode", fetch_request(10, 12), 12),
    ("decode Metadata v12, 3 topics", "decode", metadata_request(3), 12),
    ("encode ProduceResponse v9", "encode", produce_response(), 9),
    ("encode FetchResponse v12, 16 KiB", "encode", fetch_response(16_384), 12),
    ("encode MetadataResponse v12, 100x12", "encode", metadata_response(100, 12), 12),
    ("decode MetadataResponse v12, 100x12", "decode", metadata_response(100, 12), 12),
)


def runners(
    direction: str, message: schema.Message, version: int
) -> dict[str, Callable[[], object]]:
    """Return the functions to measure, by library."""
    name = type(message).__name__
    data = schema.encode(message, version)
    api = name.removesuffix("Request").removesuffix("Response")
    kind = "request" if name.endswith("Request") else "response"
    kio_class = getattr(
        importlib.import_module(f"kio.schema.{api.lower()}.v{version}.{kind}"), name
    )
    kio_read, kio_write = entity_reader(kio_class), entity_writer(kio_class)
    kio_object, _ = kio_read(data, 0)
    python_class = getattr(importlib.import_module(KAFKA_PYTHON[api]), name)
    if direction == "decode":
        decode = schema.decoder(type(message), version)
        frame = memoryview(bytearray(data))
        return {
            "ottla": lambda: decode(frame),
            "kio": lambda: kio_read(data, 0),
            "kafka-python": lambda: python_class.decode(data, version=version),
        }
    encode = schema.encoder(type(message), version)
    python_object = python_class.decode(data, version=version)
    python_object._header = None

    def write_kio() -> bytes:
        buffer = io.BytesIO()
        kio_write(buffer, kio_object)
        return buffer.getvalue()

    assert write_kio() == data
    assert bytes(python_object.encode(version=version)) == data
    return {
        "ottla": lambda: encode(message),
        "kio": write_kio,
        "kafka-python": lambda: python_object.encode(version=version),
    }


def seconds_per_call(function: Callable[[], object]) -> float:
    """Return the seconds of one call, measured in one round of at least `MIN_SECONDS`."""
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            function()
        elapsed = time.perf_counter() - start
        if elapsed >= MIN_SECONDS:
            return elapsed / count
        count = max(count * 2, int(count * MIN_SECONDS / max(elapsed, 1e-9)))


def main() -> None:
    """Run all cases and print a table (or JSON)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    for title, direction, message, version in CASES:
        functions = runners(direction, message, version)
        best = dict.fromkeys(functions, float("inf"))
        for _ in range(options.rounds):
            for library, function in functions.items():
                best[library] = min(best[library], seconds_per_call(function))
        results[title] = {library: seconds * 1e6 for library, seconds in best.items()}
        if not options.json:
            cells = "".join(f"{value:12.2f}" for value in results[title].values())
            print(f"{title:40}{cells}")
    if options.json:
        json.dump(results, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
