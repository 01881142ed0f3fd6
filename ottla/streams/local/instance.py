"""The methods of KafkaStreams that need the local engine: the tasks are in this process.

Not done: on Spark. `queryMetadataForKey` with a partitioner (a key has the partition of its hash).
"""

from typing import Any

from ottla.streams.application.instance import Engine
from ottla.streams.application.metadata import KeyQueryMetadata, LagInfo, ThreadMetadata
from ottla.streams.application.state_listeners import (
    StandbyUpdateListener,
    StateRestoreListener,
)
from ottla.streams.application.states import State, StateMachine
from ottla.streams.local.engine import LocalEngine
from ottla.streams.model.errors import StreamsError
from ottla.streams.serdes import Serde


class LocalInstance:
    """An application as an instance of the local engine."""

    _runs_on: Engine
    _states: StateMachine

    def clean_up(self) -> None:
        """Delete the local engine's state on disk; the next start restores it from the changelogs.

        Other instances that run on this machine keep theirs. Spark's checkpoint is deleted by
        `ottla streams reset`. Raises StreamsError if this instance runs.
        """
        state = self._states.state
        if state not in (State.CREATED, State.NOT_RUNNING, State.ERROR):
            raise StreamsError(f"clean_up() needs a closed application: it is {state.name}")
        if isinstance(self._runs_on, LocalEngine):
            self._runs_on.clean_up()

    def set_global_state_restore_listener(self, listener: StateRestoreListener) -> None:
        """Set the listener of restores from changelogs. Call it before `start`."""
        self._check_new("a restore listener")
        self._local("set_global_state_restore_listener").restore_listener = listener

    def set_standby_update_listener(self, listener: StandbyUpdateListener) -> None:
        """Set the listener of standby and warm-up replicas (KIP-988). Call it before `start`."""
        self._check_new("a standby listener")
        self._local("set_standby_update_listener").standby_listener = listener

    def _check_new(self, setting: str) -> None:
        if self._states.state is not State.CREATED:
            raise StreamsError(
                f"{setting} must be set before the application starts, and it is "
                f"{self._states.state.name}"
            )

    def pause(self) -> None:
        """Stop processing until `resume`; the tasks stay assigned (KIP-834; local engine only)."""
        self._local("pause").set_paused(is_paused=True)

    def resume(self) -> None:
        """Continue to process after `pause`."""
        self._local("resume").set_paused(is_paused=False)

    def is_paused(self) -> bool:
        """Return True after `pause`, until `resume`."""
        return isinstance(self._runs_on, LocalEngine) and self._runs_on.is_paused

    def metadata_for_local_threads(self) -> tuple[ThreadMetadata, ...]:
        """Return the workers of this instance, with their tasks."""
        return tuple(self._local("metadata_for_local_threads").threads())

    def all_local_store_partition_lags(self) -> dict[str, dict[int, LagInfo]]:
        """Return how far the stores of this instance are behind their changelogs, by store and
        partition: of tasks that run, that are being restored, and of standbys.
        """
        return self._local("all_local_store_partition_lags").store_lags()

    def query_metadata_for_key(
        self, store_name: str, key: Any, serde: Serde[Any] | None = None
    ) -> KeyQueryMetadata:
        """Return the instances that have a key of a store.

        The key is written by `serde`, or by the key serde of the store. Raises StreamsError if the
        topology does not have the store.
        """
        return self._local("query_metadata_for_key").hosts_of(store_name, key, serde)

    def _local(self, method: str) -> LocalEngine:
        if not isinstance(self._runs_on, LocalEngine):
            raise StreamsError(
                f"{method}() needs engine='local': on Spark there are no local tasks"
            )
        return self._runs_on
