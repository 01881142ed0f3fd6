"""Well-known examples of Kafka Streams produce the same results here."""

from ottla.streams import Serdes, SessionWindow, TimeWindow, TopologyTestDriver, Windowed
from tests.streams import kafka_examples as examples

TEXT, LONG, INTEGER = Serdes.string(), Serdes.long(), Serdes.integer()
JSON = Serdes.json(dict)
HOUR_MS = 3_600_000


def test_word_count() -> None:
    """Each word has its count."""
    with TopologyTestDriver(examples.word_count()) as driver:
        driver.create_input_topic("lines", TEXT, TEXT).pipe_input("to be or not to be")
        counts = driver.create_output_topic("word-counts", TEXT, LONG).read_key_values_to_map()
        assert driver.get_key_value_store("counts-store").get("to") == 2
    assert counts == {"to": 2, "be": 2, "or": 1, "not": 1}


def test_page_view_region() -> None:
    """A view counts in each window that contains it."""
    with TopologyTestDriver(examples.page_view_region()) as driver:
        driver.create_input_topic("UserProfiles", TEXT, JSON).pipe_input("u", {"region": "eu"})
        views = driver.create_input_topic("PageViews", TEXT, JSON)
        views.pipe_input("x", {"user": "u", "page": "p"}, 60_000)
        out = driver.create_output_topic("PageViewsByRegion", TEXT, LONG)
        assert out.read_key_values_to_map() == {"[eu@0/300000]": 1, "[eu@60000/360000]": 1}


def test_top_articles() -> None:
    """The most viewed articles come first."""
    with TopologyTestDriver(examples.top_articles()) as driver:
        views = driver.create_input_topic("page-views", Serdes.bytes(), JSON)
        for page in "ababb":
            views.pipe_input({"page": page, "industry": "x", "flags": "ARTICLE"})
        key = Serdes.time_windowed(TEXT, HOUR_MS)
        out = driver.create_output_topic("TopNewsPerIndustry", key, TEXT)
        assert out.read_key_values_to_map() == {Windowed("x", TimeWindow(0, HOUR_MS)): "b\na"}


def test_anomaly_detection() -> None:
    """A user is reported from the third click on."""
    with TopologyTestDriver(examples.anomaly()) as driver:
        driver.create_input_topic("UserClicks", TEXT, TEXT).pipe_value_list(["ann"] * 4)
        out = driver.create_output_topic("AnomalousUsers", TEXT, LONG)
        assert out.read_key_values_to_list() == [("[ann@0/60000]", 3), ("[ann@0/60000]", 4)]


def test_sum() -> None:
    """Only odd numbers are added."""
    with TopologyTestDriver(examples.sum_()) as driver:
        driver.create_input_topic("numbers", INTEGER, INTEGER).pipe_value_list([1, 2, 3])
        out = driver.create_output_topic("sum-odd", INTEGER, INTEGER)
        assert out.read_values_to_list() == [1, 4]


def test_session_windows() -> None:
    """A session that grows replaces its former result."""
    with TopologyTestDriver(examples.sessions()) as driver:
        plays = driver.create_input_topic("play-events", TEXT, JSON)
        plays.pipe_input("jo", {}, 0)
        plays.pipe_input("jo", {}, 1000)
        out = driver.create_output_topic("sessions", TEXT, LONG)
        expected = [("jo@0->0", 1), ("jo@0->0", None), ("jo@0->1000", 2)]
        assert out.read_key_values_to_list() == expected
        actual = list(driver.get_session_store("play-events-per-session").fetch("jo"))
        assert actual == [(Windowed("jo", SessionWindow(0, 1000)), 2)]


def test_global_tables() -> None:
    """Orders are joined by fields of their values."""
    with TopologyTestDriver(examples.global_tables()) as driver:
        driver.create_input_topic("customer", LONG, JSON).pipe_input(1, {"n": "ann"})
        driver.create_input_topic("product", LONG, JSON).pipe_input(2, {"n": "pen"})
        order = {"customer": 1, "product": 2}
        driver.create_input_topic("order", LONG, JSON).pipe_input(9, order)
        out = driver.create_output_topic("enriched-order", LONG, JSON)
        enriched = {"customer": {"n": "ann"}, "order": order, "product": {"n": "pen"}}
        assert out.read_key_value() == (9, enriched)


def test_interactive_queries() -> None:
    """Stores are read by name."""
    with TopologyTestDriver(examples.interactive()) as driver:
        driver.create_input_topic("TextLines", TEXT, TEXT).pipe_input("a b a")
        assert list(driver.get_key_value_store("word-count").all()) == [("a", 2), ("b", 1)]
        windows = driver.get_window_store("windowed-word-count").fetch("a", 0, 60_000)
        assert list(windows) == [(0, 2)]
