"""Generated records and batches for the tests of this directory."""

from hypothesis import strategies as st

from ottla.wire.records.compression import CODECS
from ottla.wire.records.records import BatchFields, Record

codecs = st.sampled_from(sorted(CODECS.values()))
blobs = st.binary(max_size=40) | st.binary(min_size=60, max_size=300)
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=12)), max_size=3)
# Around one time, so that deltas have both signs, and sometimes far away.
timestamps = st.integers(1_700_000_000_000 - 5000, 1_700_000_000_000 + 5000) | st.integers(
    -1, 2**53
)

records = st.builds(
    Record,
    key=st.none() | blobs,
    value=st.none() | blobs,
    headers=headers.map(tuple),
    timestamp=timestamps,
    offset=st.just(0),
)
record_lists = st.lists(records, min_size=1, max_size=30)


@st.composite
def batch_fields(draw: st.DrawFn) -> BatchFields:
    """Return the header fields of a batch that a broker may store."""
    return BatchFields(
        base_offset=draw(st.integers(0, 2**62)),
        compression=draw(codecs),
        producer_id=draw(st.integers(-1, 2**40)),
        producer_epoch=draw(st.integers(-1, 2**15 - 1)),
        base_sequence=draw(st.integers(-1, 2**31 - 1)),
        leader_epoch=draw(st.integers(-1, 2**31 - 1)),
        transactional=draw(st.booleans()),
    )
