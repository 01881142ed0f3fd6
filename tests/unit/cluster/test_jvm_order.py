"""The iteration order of the JVM's hash maps."""

import pytest

from ottla.cluster import jvm_order


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("22", 1600), ("polygenelubricants", 0x80000000), ("é", 233)],
)
def test_hash_of_a_string_is_that_of_java(text: str, expected: int) -> None:
    """The values are the results of String.hashCode, as unsigned numbers."""
    assert jvm_order.java_string_hash(text) == expected


def test_a_character_beyond_the_basic_plane_is_two_units() -> None:
    """Java hashes UTF-16, so a smiley counts as two surrogates."""
    assert jvm_order.java_string_hash("\U0001f600") == 0xD83D * 31 + 0xDE00


def test_keys_of_one_bucket_have_an_order() -> None:
    """Scala sorts them by hash, Java keeps the order of insertion."""
    # Both hash to 2112, so they share every bucket.
    assert jvm_order.properties_order(["BB", "Aa"]) == ["BB", "Aa"]
    assert jvm_order.properties_order(["Aa", "BB"]) == ["Aa", "BB"]
    assert jvm_order.scala_map_order(["31", "10", "32"]) == ["31", "10", "32"]


def test_small_immutable_map_keeps_its_insertion_order() -> None:
    """Up to four keys are fields; a fifth makes the map a trie, also with equal hashes."""
    assert jvm_order.scala_immutable_map_order("dcba") == ["d", "c", "b", "a"]
    five = jvm_order.scala_immutable_map_order(["EXT", "B", "INTERNAL", "D", "CONTROLLER"])
    assert five == ["B", "INTERNAL", "EXT", "CONTROLLER", "D"]
    equal = ["Aa", "BB", "x", "y", "z"]
    assert sorted(jvm_order.scala_immutable_map_order(equal)) == sorted(equal)
