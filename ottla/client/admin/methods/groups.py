"""The methods of AdminClient for groups and their offsets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ottla.client.admin import groups, offsets
from ottla.client.admin.apache import share_groups, streams_groups
from ottla.client.admin.methods.connected import Connected
from ottla.client.records import OffsetAndMetadata, TopicPartition

Key = tuple[str, int]


class GroupMethods(Connected):
    """Consumer groups and their offsets."""

    def list_groups(
        self,
        *,
        states: Sequence[str] = (),
        types: Sequence[str] = (),
        protocol_types: Sequence[str] = (),
    ) -> list[groups.GroupListing]:
        """Return the groups by id, optionally only those in some states, or of some types.

        The types are "classic", "consumer", "share" and "streams". The protocol type is "consumer"
        for groups of consumers of either type, and empty for those that only store offsets.
        """
        listed = groups.list_groups(self._brokers, states=states, types=types)
        chosen = set(protocol_types)
        return [row for row in listed if not chosen or row.protocol_type in chosen]

    def describe_group(
        self, group_id: str, *, include_authorized_operations: bool = False
    ) -> groups.Group:
        """Return a classic or consumer group with its members; ApiError GROUP_ID_NOT_FOUND.

        Share groups and streams groups have methods of their own.
        """
        return groups.describe_group(
            self._brokers, group_id, include_authorized_operations=include_authorized_operations
        )

    def describe_share_group(
        self, group_id: str, *, include_authorized_operations: bool = False
    ) -> share_groups.ShareGroup:
        """Return a share group with its members (KIP-932); ApiError GROUP_ID_NOT_FOUND."""
        return share_groups.describe_share_group(
            self._brokers, group_id, include_authorized_operations=include_authorized_operations
        )

    def describe_streams_group(
        self, group_id: str, *, include_authorized_operations: bool = False
    ) -> streams_groups.StreamsGroup:
        """Return a streams group: topology, members, tasks (KIP-1071); ApiError
        GROUP_ID_NOT_FOUND.
        """
        return streams_groups.describe_streams_group(
            self._brokers, group_id, include_authorized_operations=include_authorized_operations
        )

    def delete_group(self, group_id: str) -> None:
        """Delete a group of any type without members; ApiError NON_EMPTY_GROUP,
        GROUP_ID_NOT_FOUND.
        """
        groups.delete_group(self._brokers, group_id)

    def remove_members(
        self, group_id: str, *, instance_ids: Iterable[str] | None = None, reason: str = ""
    ) -> None:
        """Remove the static members with these `group.instance.id`, or all members of a group.

        Running consumers rejoin, unless they are static. Ids that are not in the group are skipped.
        """
        group = groups.describe_group(self._brokers, group_id)
        if instance_ids is not None:
            chosen = set(instance_ids)
            members = tuple(row for row in group.members if row.instance_id in chosen)
            group = replace(group, members=members)
        groups.remove_members(self._brokers, group, reason=reason)

    def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[Key] | None = None,
        *,
        require_stable: bool = True,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group, of these partitions or of all; empty if it does
        not exist.

        Waits for open transactions unless `require_stable` is False (KIP-447). Streams groups have
        such offsets, too; share groups have `list_share_group_offsets`.
        """
        committed = offsets.committed_offsets(
            self._brokers, group_id, require_stable=require_stable
        )
        chosen = None if partitions is None else {TopicPartition(*key) for key in partitions}
        return {
            # Metadata that librdkafka has committed for a program in Python ends with a NUL.
            TopicPartition(*key): OffsetAndMetadata(row.offset, row.metadata.removesuffix("\0"))
            for key, row in committed.items()
            if chosen is None or key in chosen
        }

    def alter_group_offsets(
        self, group_id: str, committed: Mapping[Key, int | OffsetAndMetadata]
    ) -> None:
        """Commit offsets for a group without members; ApiError if it has some."""
        plain = {}
        for key, value in committed.items():
            row = value if isinstance(value, OffsetAndMetadata) else OffsetAndMetadata(value)
            plain[key[0], key[1]] = offsets.CommittedOffset(row.offset, metadata=row.metadata)
        offsets.commit_offsets(self._brokers, group_id, plain)

    def delete_group_offsets(self, group_id: str, partitions: Iterable[Key]) -> None:
        """Delete committed offsets of a group."""
        offsets.delete_offsets(self._brokers, group_id, partitions)

    def list_share_group_offsets(
        self, group_id: str, partitions: Iterable[Key] | None = None
    ) -> dict[Key, share_groups.ShareOffset]:
        """Return the start offsets of a share group, by default of all partitions it consumed.

        Empty if the group does not exist.
        """
        return share_groups.list_share_group_offsets(self._brokers, group_id, partitions)

    def alter_share_group_offsets(self, group_id: str, start_offsets: Mapping[Key, int]) -> None:
        """Set start offsets of a share group without members; create it if it does not exist."""
        share_groups.alter_share_group_offsets(self._brokers, group_id, start_offsets)

    def delete_share_group_offsets(self, group_id: str, topics: Iterable[str]) -> None:
        """Delete the state of topics in a share group without members; ApiError if it has some."""
        share_groups.delete_share_group_offsets(self._brokers, group_id, topics)
