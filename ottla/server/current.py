"""The values of a broker that change while it runs: metadata, options, served APIs."""

from typing import NamedTuple

from ottla.base.options import Snapshot
from ottla.cluster.image import ClusterImage


class AdvertisedApi(NamedTuple):
    """A row of the ApiVersions response."""

    api_key: int
    min_version: int
    max_version: int


class Current:
    """The values of a broker that change while it runs.

    Each is replaced, never changed: read it once and use that one value. The image is replaced by
    `server.local_broker`, the other two by `server.node`.
    """

    __slots__ = ("advertised_apis", "image", "options")

    def __init__(
        self,
        *,
        image: ClusterImage,
        options: Snapshot,
        advertised_apis: tuple[AdvertisedApi, ...] = (),
    ) -> None:
        self.image = image
        self.options = options
        self.advertised_apis = advertised_apis
