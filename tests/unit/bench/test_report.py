"""The report of `bench.compare`, and the requests that it sends."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench import load, report
from bench.aims import Aim
from ottla.wire import headers, schema
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.produce import ProduceRequest

PEER = "kafka 4.3.0"
FIGURES = {
    "tiny 10x1 v7": {"ottla": [90.0, 60.0, 61.0], PEER: [30.0, 31.0, 20.0]},
    "tiny 10x1 v7 CPU": {"ottla": [14.0], PEER: [35.0]},
    "idle memory": {"ottla": [60.0], PEER: [100.0]},
    "memory of 1 500 readers that never read": {"ottla": [40.0], PEER: [2.0]},
    "metadata of 100 topics": {"ottla": [1.0]},
}
ABOUT = {
    "peer": PEER, "date": "2026-11-22", "rounds": 3, "machine": "x86_64", "cores": 2, "linux": "6",
    "python": "3.11", "load": 0.1, "arguments": "",
}  # fmt: skip


def test_the_table_has_medians_ratios_and_results() -> None:
    """A figure that only one server has is left out; an absolute aim ignores the other server."""
    assert report.table(FIGURES, PEER)[2:] == [
        "| tiny 10x1 v7 | requests/s | 61 | 30 | 2.03 | ≥ 2 | met |",
        "| tiny 10x1 v7 CPU | us/request | 14 | 35 | 0.40 | ≤ 0.4 | met |",
        "| memory of 1 500 readers that never read | MB | 40 | 2 | 20.00 | ≤ 150 MB | met |",
        "| idle memory | MB | 60 | 100 | 0.60 | ≤ 0.15 | missed |",
    ]


def test_an_absolute_aim_limits_our_own_value() -> None:
    """The ratio to the other server does not matter."""
    aim = Aim("MB", "less", 150, is_absolute=True)
    assert aim.is_met(150, 1)
    assert not aim.is_met(151, 1000)


def test_a_result_fills_the_page_between_its_marks(tmp_path: Path) -> None:
    """The rest of the page stays; a second result replaces the first."""
    page, result = tmp_path / "page.md", tmp_path / "result.json"
    (tmp_path / "images").mkdir()
    page.write_text(f"Before\n{report.BEGIN}\nold\n{report.END}\nAfter\n")
    result.write_text(json.dumps({"about": ABOUT, "figures": FIGURES}))
    report.publish(result, page)
    filled = page.read_text()
    assert filled.startswith("Before\n") and filled.endswith("\nAfter\n")
    assert "old" not in filled and "| idle memory | MB |" in filled
    report.publish(result, page)
    assert page.read_text() == filled
    picture = ET.parse(tmp_path / "images" / "performance.svg").getroot()
    labels = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "idle memory" in labels and "metadata of 100 topics" not in labels


def test_a_page_without_marks_is_an_error(tmp_path: Path) -> None:
    """Nothing is written."""
    page = tmp_path / "page.md"
    page.write_text("text")
    with pytest.raises(SystemExit, match="lacks the lines"):
        report.fill(page, [], "")
    assert page.read_text() == "text"


@pytest.mark.parametrize("version", [7, 9, 11, 12])
def test_requests_are_of_the_version_that_is_measured(version: int) -> None:
    """Produce and Fetch of old and new versions, with all partitions."""
    produced = load.produce_request("t", 5, 2, 100, version)
    header = headers.decode_request_header(memoryview(produced[4:]))
    request, _ = schema.decode(ProduceRequest, version, produced[4:], header.body_position)
    assert (header.api_version, request.topic_data[0].partition_data[0].index) == (version, 5)
    fetched = load.fetch_request("t", range(3), 1000, version=version)
    header = headers.decode_request_header(memoryview(fetched[4:]))
    requested, _ = schema.decode(FetchRequest, version, fetched[4:], header.body_position)
    assert [partition.partition for partition in requested.topics[0].partitions] == [0, 1, 2]
    assert requested.max_bytes == 3000
