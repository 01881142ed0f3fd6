"""Tutorials of Kafka Streams with custom processors and stores produce the same results here."""

from typing import Any

import pytest

from ottla.streams import (
    KeyQuery,
    QueryableStoreTypes,
    Serdes,
    StateQueryRequest,
    StoreQueryParameters,
    TopologyTestDriver,
    WindowedSerdes,
)
from tests.streams import kafka_tutorials as tutorials

TEXT, LONG, INTEGER, DOUBLE = Serdes.string(), Serdes.long(), Serdes.integer(), Serdes.double()
JSON = Serdes.json(dict)
MINUTE_MS = 60_000


def test_words_are_counted_by_a_processor() -> None:
    """All counts are forwarded once a second of stream time."""
    with TopologyTestDriver(tutorials.word_count_processor()) as driver:
        lines = driver.create_input_topic("streams-plaintext-input", TEXT, TEXT)
        lines.pipe_input("k", "b a b", 0)
        lines.pipe_input("k", "b", 1_000)
        out = driver.create_output_topic("streams-wordcount-processor-output", TEXT, TEXT)
        expected = [("a", "1"), ("b", "2"), ("a", "1"), ("b", "3")]
        assert out.read_key_values_to_list() == expected


def test_duplicates_within_the_window_are_dropped() -> None:
    """After the window the same id is new again."""
    with TopologyTestDriver(tutorials.deduplication()) as driver:
        events = driver.create_input_topic("events", TEXT, JSON)
        for event, time in (("x", 0), ("x", 1), ("y", 2), ("x", 11 * MINUTE_MS)):
            events.pipe_input("k", {"id": event, "time": time}, time)
        out = driver.create_output_topic("unique", TEXT, JSON)
        values = [value["time"] for value in out.read_values_to_list() if value is not None]
        assert values == [0, 2, 11 * MINUTE_MS]


def test_a_stream_waits_for_its_table() -> None:
    """A record without a partner is joined at a later check of the clock."""
    with TopologyTestDriver(tutorials.custom_join()) as driver:
        users = driver.create_input_topic("users-topic", TEXT, TEXT)
        clicks = driver.create_input_topic("clicks", TEXT, TEXT)
        out = driver.create_output_topic("enriched", TEXT, TEXT)
        users.pipe_input("a", "Ann")
        clicks.pipe_key_value_list([("a", "home"), ("b", "shop")])
        assert out.read_key_values_to_list() == [("a", "home by Ann")]
        users.pipe_input("b", "Bob")
        driver.advance_wall_clock_time("1 min")
        assert out.read_key_values_to_list() == [("b", "shop by Bob")]
        assert list(driver.get_key_value_store("waiting").all()) == []


def test_charts_keep_the_most_played_songs() -> None:
    """A repeated song replaces its former entry."""
    with TopologyTestDriver(tutorials.music_charts()) as driver:
        songs = driver.create_input_topic("song-feed", LONG, JSON)
        for number, name in enumerate("abcdefg"):
            songs.pipe_input(number, {"name": name, "genre": "punk"})
        plays = driver.create_input_topic("play-events", TEXT, JSON)
        for number in (0, 1, 2, 3, 4, 5, 6, 3, 3, 5):
            plays.pipe_input("uk", {"song_id": number, "duration": 40_000})
        plays.pipe_input("uk", {"song_id": 0, "duration": 10})
        kind = QueryableStoreTypes.key_value_store()
        parameters = StoreQueryParameters.from_name_and_type("top-five-songs-by-genre", kind)
        top = driver.store(parameters).get("punk")
    assert [row["plays"] for row in top] == [3, 2, 1, 1, 1]
    assert [row["song"] for row in top[:2]] == ["d", "f"]


def test_topics_are_selected_by_record(capsys: pytest.CaptureFixture[str]) -> None:
    """The topic depends on the value and on the source topic."""
    with TopologyTestDriver(tutorials.dynamic_topics()) as driver:
        for topic, sort, amount in (
            ("orders-eu", "special", 500),
            ("orders-us", "plain", 5),
            ("orders-us", "plain", -1),
        ):
            order = {"sort": sort, "amount": amount}
            driver.create_input_topic(topic, TEXT, JSON).pipe_input("k", order)
        assert driver.produced_topic_names == {"special-orders-eu", "regular", "wrong"}
    assert capsys.readouterr().out.splitlines()[0].startswith("[orders]: k, {'sort': 'special'")


def test_averages_of_sliding_windows_are_emitted_once() -> None:
    """The result is emitted when the window closes."""
    with TopologyTestDriver(tutorials.temperatures()) as driver:
        temperatures = driver.create_input_topic("temps", TEXT, DOUBLE)
        for value, time in ((10.0, 0), (20.0, 30_000), (0.0, 10 * MINUTE_MS)):
            temperatures.pipe_input("s", value, time)
        serde = WindowedSerdes.time_windowed_serde_from(str, "1 min")
        by_key = driver.create_output_topic("averages", serde, DOUBLE).read_key_values_to_map()
    starts = {key.window.start: value for key, value in by_key.items() if key is not None}
    assert starts == {0: 15.0, 1: 20.0, 9 * MINUTE_MS: 0.0}


def test_logins_of_all_applications_are_combined() -> None:
    """Several streams are aggregated into one table."""
    with TopologyTestDriver(tutorials.logins()) as driver:
        for number in "1231":
            topic = driver.create_input_topic(f"app-{number}", TEXT, JSON)
            topic.pipe_input("game", {"user": f"u{number}"}, 5)
        driver.create_input_topic("app-2", TEXT, JSON).pipe_input("other", {"user": "x"}, 10)
        out = driver.create_output_topic("login-rollup", TEXT, JSON)
        assert out.read_key_values_to_map()["game"] == {"u1": 2, "u2": 1, "u3": 1}


def test_purchases_are_joined_with_albums() -> None:
    """The join is by foreign key, also if the album comes later."""
    with TopologyTestDriver(tutorials.music_interest()) as driver:
        driver.create_input_topic("track-purchases", LONG, JSON).pipe_input(7, {"album": 5})
        album = {"genre": "rock", "artist": "them"}
        driver.create_input_topic("albums", LONG, JSON).pipe_input(5, album)
        out = driver.create_output_topic("music-interest", LONG, JSON)
        assert out.read_key_value() == (7, {**album, "album": 5})
        request = StateQueryRequest.in_store("interest-store").with_query(KeyQuery.with_key(7))
        only = driver.query(request).get_only_partition_result()
        assert only is not None
        assert only.get_result() == {**album, "album": 5}


def test_entries_of_a_table_expire() -> None:
    """After two minutes without a record, a tombstone removes the entry."""
    with TopologyTestDriver(tutorials.table_ttl()) as driver:
        table = driver.create_input_topic("table", TEXT, TEXT)
        table.pipe_input("a", "x", 0)
        table.pipe_input("b", "y", 2 * MINUTE_MS)
        table.pipe_input("b", "z", 2 * MINUTE_MS + 15_000)
        assert driver.get_key_value_store("table-store").get("a") is None
        assert driver.get_key_value_store("table-store").get("b") == "z"


def test_impressions_are_joined_with_clicks() -> None:
    """The join is by ad, within five minutes of the times in the values."""
    with TopologyTestDriver(tutorials.clicks_and_impressions()) as driver:
        shows: Any = driver.create_input_topic("impressions", TEXT, JSON)
        clicks: Any = driver.create_input_topic("clicks", TEXT, JSON)
        shows.pipe_input("s", {"ad": 1, "time": 0})
        clicks.pipe_input("c", {"ad": 1, "time": MINUTE_MS})
        shows.pipe_input("s", {"ad": 2, "time": MINUTE_MS})
        clicks.pipe_input("c", {"ad": 9, "time": 20 * MINUTE_MS})
        shows.pipe_input("s", {"ad": 3, "time": 20 * MINUTE_MS})
        out = driver.create_output_topic("results", TEXT, JSON)
        expected = [("1", {"ad": "1", "clicked": True}), ("2", {"ad": "2", "clicked": False})]
        assert out.read_key_values_to_list() == expected


def test_changes_of_a_table_are_computed() -> None:
    """The transformer's store is part of the topology."""
    with TopologyTestDriver(tutorials.differences()) as driver:
        levels = driver.create_input_topic("levels", TEXT, INTEGER)
        levels.pipe_key_value_list([("a", 5), ("a", 7), ("a", 7)])
        out = driver.create_output_topic("changes", TEXT, INTEGER)
        assert out.read_key_values_to_list() == [("a", 5), ("a", 2), ("a", None)]
