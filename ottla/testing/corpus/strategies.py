"""Hypothesis strategies for awkward records; Hypothesis is not a dependency of Ottla."""

import json
import struct

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ottla.testing.corpus.records import BEGIN_MS, AwkwardRecord, Header

_CONTROLS = "\x00\x07\x08\x0b\x0c\x1b\x7f\u0085\u200e\u202e\u2028\ufeff"
_NAMES = ("", "_id", "_time", "_offset", "headers", "select", "a.b", "a", "A", "it's", 'say "x"')
# Digits that a parser of doubles or of 64 bits changes.
_NUMBERS = (
    "100.00", "1e400", "-0", "-0.0", "1E2", "18446744073709551615", "9007199254740993",
    "12345678901234567890.125", "0.1000", "1e-400", "NaN", "Infinity",
)  # fmt: skip


def texts() -> SearchStrategy[str]:
    """Return texts, with control characters and marks that change the direction of text."""
    characters = st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from(_CONTROLS),
        st.sampled_from("\"',;=\n\r\t\\%/<>"),
    )
    return st.text(characters, max_size=30)


def json_texts() -> SearchStrategy[str]:
    """Return JSON texts with unusual numbers, equal names and white space."""
    blank = st.sampled_from(["", " ", "\n", "\t", "  "])
    names = st.one_of(st.sampled_from(_NAMES), texts()).map(json.dumps)
    leaves = st.one_of(
        st.sampled_from(_NUMBERS),
        st.sampled_from(["null", "true", "false", '"\\ud800"', '"\\u0000"', '"\\/"']),
        st.integers(-(2**70), 2**70).map(str),
        texts().map(json.dumps),
    )

    def grown(inner: SearchStrategy[str]) -> SearchStrategy[str]:
        pairs = st.builds("{2}{0}{2}:{2}{1}{2}".format, names, inner, blank)
        items = st.builds("{1}{0}{1}".format, inner, blank)
        return st.one_of(
            st.lists(pairs, max_size=4).map(lambda rows: "{" + ",".join(rows) + "}"),
            st.lists(items, max_size=4).map(lambda rows: "[" + ",".join(rows) + "]"),
        )

    return st.recursive(leaves, grown, max_leaves=8)


def payloads() -> SearchStrategy[bytes | None]:
    """Return keys and values: null, empty, text, JSON, wire format of registries, any bytes."""
    framed = st.builds(
        lambda number, text: b"\x00" + struct.pack(">I", number) + text.encode(),
        st.integers(0, 2**31 - 1),
        json_texts(),
    )
    return st.one_of(
        st.none(),
        st.just(b""),
        texts().map(str.encode),
        json_texts().map(str.encode),
        framed,
        st.binary(max_size=40),
    )


def timestamps() -> SearchStrategy[int]:
    """Return timestamps in ms: none (-1), 0, equal ones, and unordered ones."""
    return st.one_of(
        st.sampled_from([-1, 0, 1, BEGIN_MS]),
        st.integers(BEGIN_MS, BEGIN_MS + 5000),
        st.integers(0, 2**42),
    )


def headers() -> SearchStrategy[tuple[Header, ...]]:
    """Return headers: null, empty, equal and missing names, not UTF-8."""
    names = st.one_of(st.sampled_from(["", "h", "h", "a=b,c"]), texts())
    return st.lists(st.tuples(names, payloads()), max_size=5).map(tuple)


def records() -> SearchStrategy[AwkwardRecord]:
    """Return records of these parts."""
    return st.builds(
        AwkwardRecord,
        st.just("generated"),
        payloads(),
        payloads(),
        headers(),
        timestamps(),
    )
