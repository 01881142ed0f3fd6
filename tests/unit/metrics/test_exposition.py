"""Metrics in the text format of Prometheus."""

from collections.abc import Iterator

from ottla.metrics.exposition import Family, Kind, Sample, counter, gauge, labels, render


def test_family_has_a_header_and_one_line_per_sample() -> None:
    """Whole numbers have no decimal point, and others lose no digit."""
    family = gauge("disk_bytes", "Room.", [(labels(path="/a"), 10), (labels(path="/b"), 0.1)])
    assert "".join(render([family])) == (
        "# HELP disk_bytes Room.\n# TYPE disk_bytes gauge\n"
        'disk_bytes{path="/a"} 10\ndisk_bytes{path="/b"} 0.1\n'
    )


def test_one_number_is_a_family_without_labels() -> None:
    """Most families have no labels; True is written as 1."""
    assert "".join(render([counter("a_total", "A.", 5)])).endswith("\na_total 5\n")
    assert "".join(render([gauge("is_up", "Up.", True)])).endswith("\nis_up 1\n")


def test_labels_are_escaped() -> None:
    """Clients choose client ids and group names, so labels are escaped."""
    assert labels(name='a"b\\c\nd') == '{name="a\\"b\\\\c\\nd"}'
    assert labels() == ""


def test_special_numbers_are_written_as_in_prometheus() -> None:
    """The values are NaN and the two infinities."""
    values = [("", float("nan")), ("", float("inf")), ("", float("-inf"))]
    lines = "".join(render([gauge("x", "X.", values)])).splitlines()[2:]
    assert lines == ["x NaN", "x +Inf", "x -Inf"]


def test_a_summary_has_its_count_and_sum() -> None:
    """Count and sum have names of their own below one header."""
    quantiles = [(labels(quantile="0.5"), 1.5)]
    suffixed: dict[str, list[Sample]] = {"_count": [("", 2)], "_sum": [("", 3.0)]}
    text = "".join(render([Family("t", Kind.SUMMARY, "T.", quantiles, suffixed)]))
    assert text == ('# HELP t T.\n# TYPE t summary\nt{quantile="0.5"} 1.5\nt_count 2\nt_sum 3.0\n')


def test_empty_family_is_omitted() -> None:
    """A header without samples is omitted."""
    assert list(render([gauge("x", "X.", [])])) == []


def test_long_family_is_generated_in_pieces() -> None:
    """The writer can do other work between the pieces."""
    read: list[int] = []

    def samples() -> Iterator[Sample]:
        for number in range(1000):
            read.append(number)
            yield labels(number=number), number

    pieces = render([gauge("x", "X.", samples())])
    first = next(pieces)
    assert len(read) < 200
    text = first + "".join(pieces)
    assert text.count("# TYPE") == 1
    assert text.count("\n") == 1002
