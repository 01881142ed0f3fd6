"""The description of a topology in the metadata of an instance."""

import base64
import json
import random
import string
import zlib

from ottla.streams.application.election import Candidate, ElectionResult, elect
from ottla.streams.application.published_topology import ENCODED_MAX, encode_topology


def test_a_description_is_compressed_text() -> None:
    """Other programs read it with zlib and Base64."""
    text = "Sub-topology: 0\n" * 1000
    encoded = encode_topology(text)
    assert len(encoded) < 1000
    assert zlib.decompress(base64.b64decode(encoded)).decode() == text


def test_a_description_that_is_too_long_is_not_published() -> None:
    """The metadata of a group stays small; the application runs without it."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    letters = random.Random(seed).choices(string.ascii_letters, k=2 * ENCODED_MAX)
    assert encode_topology("".join(letters)) == ""


def test_the_result_of_an_election_does_not_repeat_topologies() -> None:
    """The result goes to every instance; only the metadata of the member has the description."""
    candidate = Candidate("a", 1, topology="text")
    assert json.loads(candidate.encode())["topology"] == "text"
    result = elect([candidate, Candidate("b", 2, topology="text")])
    assert b"topology" not in result.encode()
    assert ElectionResult.decode(result.encode()).active == "a"


def test_fields_of_newer_instances_are_ignored() -> None:
    """An election works with instances of a later version."""
    fields = {**Candidate("a", 1).fields(), "invented": 1}
    assert Candidate.read(fields) == Candidate("a", 1)
