"""Every message in every version is decoded as it was encoded."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.wire import schema
from tests.wire import samples

CLASSES = samples.MESSAGES + samples.STORED
EXAMPLES_PER_VERSION = 5


@pytest.mark.parametrize("cls", CLASSES, ids=samples.version_id)
def test_message_round_trips(cls: type[schema.Message]) -> None:
    """Any values of any version are decoded unchanged, and the decoder stops at the end of the
    bytes.
    """

    @settings(
        max_examples=EXAMPLES_PER_VERSION * len(samples.versions(cls)),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(samples.versions(cls)))
        message = data.draw(strategies[version])
        encoded = schema.encode(message, version)
        assert schema.decode(cls, version, encoded) == (message, len(encoded))
        # In the middle of a frame, and from a buffer that is not bytes.
        frame = memoryview(bytearray(b"\xff\xff" + encoded + b"\xff\xff\xff"))
        assert schema.decode(cls, version, frame, 2) == (message, len(encoded) + 2)
        assert b"".join(schema.encode_parts(message, version)) == encoded

    strategies = {
        version: samples.struct_strategy(cls, version) for version in samples.versions(cls)
    }
    check()
