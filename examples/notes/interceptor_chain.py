"""Two interceptors in a chain: the first adds a time stamp to values, the second counts results."""

import sys
import time
from dataclasses import replace
from typing import Any

from ottla.client import Producer, ProducerInterceptor, ProducerRecord, RecordMetadata


class TimeInterceptor(ProducerInterceptor):
    """Puts the time in front of each value."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return a copy with the new value (the notes' listing returns null: an error here)."""
        return replace(record, value=f"{int(time.time() * 1000)},{record.value}")


class CounterInterceptor(ProducerInterceptor):
    """Counts acknowledged and failed records, and reports both when the producer is closed."""

    def __init__(self) -> None:
        self.success_count = 0
        self.error_count = 0
        self.report: list[str] = []

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """Count the result."""
        if error is None:
            self.success_count += 1
        else:
            self.error_count += 1

    def close(self) -> None:
        """Report the counts."""
        self.report = [f"success: {self.success_count}", f"error: {self.error_count}"]


def main(bootstrap: str, topic: str = "first") -> list[str]:
    """Send ten records; return the counter's report."""
    counter = CounterInterceptor()
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "value.serializer": "org.apache.kafka.common.serialization.StringSerializer",
        "interceptor.classes": [TimeInterceptor, counter],
    }
    with Producer(settings) as producer:
        for number in range(10):
            producer.send(topic, f"message{number}")
    return counter.report


if __name__ == "__main__":
    print(*main(*sys.argv[1:]), sep="\n")
