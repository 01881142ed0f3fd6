"""The picture of `--plot FILE` of the performance scripts."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ottla.tools.measuring import plot
from ottla_scripts import entry

pytestmark = pytest.mark.slow

_SVG = "{http://www.w3.org/2000/svg}"


def points_of(path: Path) -> list[tuple[float, float]]:
    line = ET.parse(path).getroot().find(f"{_SVG}polyline")
    assert line is not None
    pairs = [pair.split(",") for pair in line.attrib["points"].split()]
    return [(float(x), float(y)) for x, y in pairs]


def _texts(path: Path) -> list[str]:
    return [element.text or "" for element in ET.parse(path).getroot().iter(f"{_SVG}text")]


def test_points_are_where_the_values_are(tmp_path: Path) -> None:
    """Both axes start at 0 and end at the largest value; texts are escaped."""
    path = tmp_path / "a.svg"
    values = [(1.0, 5.0), (2.0, 0.0), (4.0, 10.0)]
    plot.write(str(path), plot.Curve("a < b & c", "record", "ms", values))
    (x1, y1), (x2, y2), (x3, y3) = points_of(path)
    assert (x2 - x1) * 2 == pytest.approx(x3 - x2, abs=0.2)
    # A larger value is higher, and 5 is in the middle of 0 and 10.
    assert y3 < y1 < y2
    assert y1 == pytest.approx((y2 + y3) / 2, abs=0.1)
    assert len(ET.parse(path).getroot().findall(f"{_SVG}circle")) == 3
    assert {"a < b & c", "record", "ms", "4", "10"} <= set(_texts(path))


def test_many_values_keep_their_peaks(tmp_path: Path) -> None:
    """With more values than pixels, the largest value of each pixel is drawn."""
    path = tmp_path / "a.svg"
    values = [(float(at), 100.0 if at == 5001 else 1.0) for at in range(10_000)]
    plot.write(str(path), plot.Curve("many", "record", "ms", values))
    points = points_of(path)
    assert 500 <= len(points) <= 720
    assert sum(y == min(y for _, y in points) for _, y in points) == 1


def test_no_values_are_an_empty_picture(tmp_path: Path) -> None:
    """A run without records has axes and no line."""
    path = tmp_path / "a.svg"
    plot.write(str(path), plot.Curve("none", "record", "ms", []))
    assert points_of(path) == []


LINES = {
    "kafka-producer-perf-test": (
        "--topic t --num-records 20 --record-size 9 --throughput -1", 20, "Latency of 20 records",
    ),
    "kafka-e2e-latency": (
        "--topic t --num-records 5 --producer-acks all --record-size 9", 5,
        "Latency of 5 records, there and back",
    ),
    "kafka-consumer-perf-test": ("--topic t --num-records 3 --timeout 9000", 1, "Rate of 3 records"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(LINES))
def test_missing_folder_is_reported_before_the_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is measured, and no broker is needed to find out."""
    path = tmp_path / "missing" / "plot.svg"
    line = ["--bootstrap-server", "127.0.0.1:1", *LINES[name][0].split(), "--plot", str(path)]
    assert entry.run(name, line) == 1
    assert "its folder does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "it is a folder: add the name of a file"),
        ("plot.png", "the picture is SVG: name it plot.svg"),
        ("plot.PDF", "the picture is SVG: name it plot.svg"),
        ("file/plot.svg", "its folder does not exist"),
    ],
)
def test_target_that_cannot_be_a_picture_is_reported_before_the_run(
    name: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A long measurement is not lost, and no viewer finds SVG in a file for another format."""
    (tmp_path / "file").touch()
    line = "--bootstrap-server 127.0.0.1:1 --topic t --num-records 1 --record-size 1 --throughput 1"
    target = str(tmp_path / name)
    assert entry.run("kafka-producer-perf-test", [*line.split(), "--plot", target]) == 1
    assert f"cannot write --plot {target}: {sentence}" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
