"""The text is what Prometheus reads."""

from collections.abc import Iterator

from ottla.metrics.exposition import Family, Kind, Sample, counter, gauge, labels, render


def test_a_family_has_its_head_and_a_line_a_sample() -> None:
    """Whole numbers without a point, others so that none is lost."""
    family = gauge("disk_bytes", "Room.", [(labels(path="/a"), 10), (labels(path="/b"), 0.1)])
    assert "".join(render([family])) == (
        "# HELP disk_bytes Room.\n# TYPE disk_bytes gauge\n"
        'disk_bytes{path="/a"} 10\ndisk_bytes{path="/b"} 0.1\n'
    )


def test_one_number_is_a_family_without_labels() -> None:
    """As most are; a truth is 1."""
    assert "".join(render([counter("a_total", "A.", 5)])).endswith("\na_total 5\n")
    assert "".join(render([gauge("is_up", "Up.", True)])).endswith("\nis_up 1\n")


def test_labels_are_escaped() -> None:
    """Clients choose client ids and group names."""
    assert labels(name='a"b\\c\nd') == '{name="a\\"b\\\\c\\nd"}'
    assert labels() == ""


def test_numbers_that_are_none_are_written_as_prometheus_does() -> None:
    """NaN and the two infinities."""
    values = [("", float("nan")), ("", float("inf")), ("", float("-inf"))]
    lines = "".join(render([gauge("x", "X.", values)])).splitlines()[2:]
    assert lines == ["x NaN", "x +Inf", "x -Inf"]


def test_a_summary_has_its_count_and_sum() -> None:
    """Under names of their own, below one head."""
    quantiles = [(labels(quantile="0.5"), 1.5)]
    suffixed: dict[str, list[Sample]] = {"_count": [("", 2)], "_sum": [("", 3.0)]}
    text = "".join(render([Family("t", Kind.SUMMARY, "T.", quantiles, suffixed)]))
    assert text == ('# HELP t T.\n# TYPE t summary\nt{quantile="0.5"} 1.5\nt_count 2\nt_sum 3.0\n')


def test_an_empty_family_is_left_out() -> None:
    """A head without samples says nothing."""
    assert list(render([gauge("x", "X.", [])])) == []


def test_a_long_family_comes_in_pieces_as_it_is_read() -> None:
    """So that whoever writes it can do other things in between."""
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
