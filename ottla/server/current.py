"""The values of a broker that change while it runs: metadata, options, served APIs."""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from ottla.base.options import Snapshot
from ottla.cluster.image import NO_CONTROLLER, BrokerImage, ClusterImage

# How long metadata lists a broker that is no longer registered, in seconds. A live broker whose
# session has ended is registered again, and leaders are elected, in much less.
DEPARTED_SECONDS = 2.0


class AdvertisedApi(NamedTuple):
    """A row of the ApiVersions response."""

    api_key: int
    min_version: int
    max_version: int


class Contacts:
    """The processes of other brokers that this one has connected to, as its watches find them.

    `reached` are registrations. `lost_at` has the time when the connection to a broker was lost,
    by the monotonic clock in seconds, until it is connected again. Both outlive the watches: in
    the controller's next term, an ended process is noticed at once. `fetches_lost_at` is the same
    for connections of replica fetchers, which only brokers that follow the other one have.
    `changed` is called if one of both has a new entry, or `lost_at` lost one.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.reached: set[Hashable] = set()
        self.lost_at: dict[int, float] = {}
        self.fetches_lost_at: dict[int, float] = {}

    def connected(self, broker_id: int, registration: Hashable) -> None:
        """Apply that a process has accepted a connection."""
        self.reached.add(registration)
        if self.lost_at.pop(broker_id, None) is not None:
            self._changed()

    def lost(self, broker_id: int, now: float) -> None:
        """Apply that the connection was lost, or that nothing listens at the broker's address."""
        if broker_id not in self.lost_at:
            self.lost_at[broker_id] = now
            self._changed()

    def fetched(self, broker_id: int) -> None:
        """Apply a leader's response to a replica fetcher."""
        self.fetches_lost_at.pop(broker_id, None)

    def fetch_lost(self, broker_id: int, now: float) -> None:
        """Apply that a replica fetcher has lost its connection to a leader."""
        if broker_id not in self.fetches_lost_at:
            self.fetches_lost_at[broker_id] = now
            self._changed()

    def lost_after(self, time: float) -> set[int]:
        """Return the brokers whose connection was lost after `time` and not opened again."""
        return {
            broker_id
            for times in (self.lost_at, self.fetches_lost_at)
            for broker_id, lost_at in times.items()
            if lost_at > time
        }


class Current:
    """The values of a broker that change while it runs.

    Each is replaced, never changed: read it once and use that one value. The image is replaced by
    `server.local_broker`, the options by `server.node`, the APIs by `server.composition`. Only
    `contacts` is changed in place. `informed` is set once a controller that knows this broker has
    sent it the metadata. `departed` has the brokers that the image has lost in the last two
    seconds.
    """

    __slots__ = ("advertised_apis", "contacts", "departed", "image", "informed", "options")

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
        self.contacts = Contacts(self._renew_image)
        self.informed = asyncio.Event()
        self.departed: Mapping[int, BrokerImage] = {}

    @property
    def controller_id(self) -> int:
        """The controller's broker id for clients; -1 while this broker is not connected to it."""
        controller_id = self.image.controller_id
        return NO_CONTROLLER if controller_id in self.contacts.lost_at else controller_id

    @property
    def controller_lost_at(self) -> float | None:
        """The time at which the connection to the controller was lost (monotonic, in seconds)."""
        return self.contacts.lost_at.get(self.image.controller_id)

    def brokers_changed(self, former: Mapping[int, BrokerImage]) -> None:
        """Remember for a while the brokers that the image had and has no longer."""
        gone = {key: broker for key, broker in former.items() if key not in self.image.brokers}
        if gone:
            self.departed = {**self.departed, **gone}
            asyncio.get_running_loop().call_later(DEPARTED_SECONDS, self._forget, gone)

    def _forget(self, gone: Mapping[int, BrokerImage]) -> None:
        kept = {key: one for key, one in self.departed.items() if one is not gone.get(key)}
        self.departed = kept
        self._renew_image()

    def _renew_image(self) -> None:
        # Responses that were created from the former image are cached under it.
        self.image = self.image.with_controller(
            self.image.controller_id, self.image.controller_epoch
        )
