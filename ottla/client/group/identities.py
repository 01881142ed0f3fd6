"""The identity under which a member commits, and librdkafka's form of it."""

import struct
from typing import NamedTuple

NO_GENERATION = -1
_MAGIC = b"CGMDv2:"
_GENERATION = struct.Struct("=i")
_DYNAMIC, _STATIC = b"\1", b"\0"


class Identity(NamedTuple):
    """A member at one moment; the generation is an epoch with KIP-848.

    Without a membership the id is empty and the generation NO_GENERATION.
    """

    member_id: str = ""
    generation: int = NO_GENERATION
    instance_id: str | None = None


def encode_metadata(group_id: str, identity: Identity) -> bytes:
    """Return an identity as rd_kafka_consumer_group_metadata_write does."""
    names = f"{group_id}\0{identity.member_id}\0".encode()
    instance = identity.instance_id
    end = _DYNAMIC if instance is None else _STATIC + f"{instance}\0".encode()
    return _MAGIC + _GENERATION.pack(identity.generation) + names + end


def decode_metadata(metadata: bytes) -> Identity:
    """Return the identity that librdkafka has written; ValueError for another form."""
    if not metadata.startswith(_MAGIC):
        raise ValueError(f"{metadata[: len(_MAGIC)]!r} does not begin librdkafka's group metadata")
    (generation,) = _GENERATION.unpack_from(metadata, len(_MAGIC))
    _, member_id, end = metadata[len(_MAGIC) + _GENERATION.size :].split(b"\0", 2)
    is_static = end != _DYNAMIC
    instance = end.removeprefix(_STATIC).removesuffix(b"\0").decode() if is_static else None
    return Identity(member_id.decode(), generation, instance)
