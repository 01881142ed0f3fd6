"""The description of a topology as an instance publishes it: in its metadata in the election's
group.

Any client that may describe the group `<application id>-drivers` can read it, as the console does:
the JSON field `topology` is the text of `Topology.describe()`, compressed with zlib, in Base64.
"""

import base64
import zlib

# Brokers store the metadata of all members in one record of __consumer_offsets.
ENCODED_MAX = 32_768


def encode_topology(text: str) -> str:
    """Return the field's value; empty if the description is too long to be published."""
    encoded = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return encoded if len(encoded) <= ENCODED_MAX else ""
