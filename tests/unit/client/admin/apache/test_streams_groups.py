"""Streams groups: topology, members and their tasks."""

from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.apache import streams_groups
from ottla.client.brokers import Brokers
from ottla.wire.messages import streams_group_describe as describing


def _answer(cluster: Any, **group: Any) -> None:
    row = describing.DescribedGroup(group_id="s", **group)
    cluster.answers["StreamsGroupDescribe"] = lambda request: (
        describing.StreamsGroupDescribeResponse(groups=[row])
    )


def test_topology_is_described_with_internal_topics(cluster: Any, brokers: Brokers) -> None:
    """Each sub-topology has its sources, and the topics that the application creates."""
    changelog = describing.TopicInfo(
        name="s-store-changelog",
        replication_factor=3,
        topic_configs=[describing.KeyValue(key="cleanup.policy", value="compact")],
    )
    repartition = describing.TopicInfo(name="s-r-repartition", partitions=4)
    part = describing.Subtopology(
        subtopology_id="0",
        source_topics=["t"],
        repartition_sink_topics=["s-q-repartition"],
        state_changelog_topics=[changelog],
        repartition_source_topics=[repartition],
    )
    topology = describing.Topology(epoch=7, subtopologies=[part])
    _answer(cluster, group_state="NotReady", group_epoch=3, assignment_epoch=2, topology=topology)
    group = streams_groups.describe_streams_group(brokers, "s")
    assert (group.state, group.group_epoch, group.assignment_epoch) == ("NotReady", 3, 2)
    assert group.topology_epoch == 7
    assert group.subtopologies == (
        streams_groups.SubTopology(
            "0",
            ("t",),
            ("s-q-repartition",),
            (
                streams_groups.InternalTopic(
                    "s-store-changelog", 0, 3, {"cleanup.policy": "compact"}
                ),
            ),
            (streams_groups.InternalTopic("s-r-repartition", 4, 0, {}),),
        ),
    )
    assert group.authorized_operations is None


def test_members_are_described_with_their_tasks(cluster: Any, brokers: Brokers) -> None:
    """Tasks are active, standby or warm-up; offsets are by task."""
    tasks = [describing.TaskIds(subtopology_id="0", partitions=[1, 0])]
    member = describing.Member(
        member_id="m",
        member_epoch=3,
        client_id="c",
        client_host="/10.0.0.1",
        topology_epoch=7,
        process_id="p",
        user_endpoint=describing.Endpoint(host="h", port=80),
        client_tags=[describing.KeyValue(key="zone", value="a")],
        task_offsets=[describing.TaskOffset(subtopology_id="0", partition=1, offset=5)],
        assignment=describing.Assignment(active_tasks=tasks),
        target_assignment=describing.Assignment(standby_tasks=tasks, warmup_tasks=tasks),
    )
    _answer(cluster, group_state="Stable", members=[member])
    group = streams_groups.describe_streams_group(brokers, "s")
    assert (group.topology_epoch, group.subtopologies) == (-1, ())
    both = (("0", 0), ("0", 1))
    assert group.members == (
        streams_groups.StreamsMember(
            member_id="m",
            member_epoch=3,
            instance_id=None,
            rack_id=None,
            client_id="c",
            host="10.0.0.1",
            topology_epoch=7,
            process_id="p",
            endpoint=("h", 80),
            client_tags={"zone": "a"},
            task_offsets={("0", 1): 5},
            task_end_offsets={},
            assignment=streams_groups.TaskAssignment(both, (), ()),
            target_assignment=streams_groups.TaskAssignment((), both, both),
            is_classic=False,
        ),
    )


def test_a_streams_group_that_does_not_exist_is_an_error(cluster: Any, brokers: Brokers) -> None:
    """The error names the group."""
    _answer(cluster, error_code=69, error_message="Group s is not a streams group.")
    with pytest.raises(ApiError, match="Group 's': Group s is not a streams group") as caught:
        streams_groups.describe_streams_group(brokers, "s")
    assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND
