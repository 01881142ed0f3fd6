"""Subscriptions by regular expression: resolved in the background, and again for new topics."""

import pytest

from ottla.base.errors import ErrorCode
from tests.unit.coordinators.consumer.conftest import T, U, partitions_in, run

V = bytes(15) + b"\x03"


def test_expression_is_resolved_after_the_join(world, consumers):
    """The response to the join has no partitions; the heartbeat after the lookup has them."""

    async def scenario():
        consumers.start()
        joined = consumers.beat("a", subscribed_topic_regex="[tu]")
        assert (joined.member_epoch, partitions_in(joined)) == (1, {})
        await consumers.sleep(0.001)
        actual = consumers.beat("a", 1)
        assert (actual.member_epoch, partitions_in(actual)) == (
            2,
            {T: [0, 1, 2, 3], U: [0, 1, 2, 3]},
        )
        before = consumers.group
        await consumers.restart()
        assert consumers.group == before

    run(world, scenario())


def test_expressions_match_whole_names(world, consumers):
    """An expression that matches only a part of a name does not match the topic."""

    async def scenario():
        consumers.start()
        consumers.grow("tt", V, 1)
        consumers.beat("a", subscribed_topic_regex="t")
        await consumers.sleep(0.001)
        assert partitions_in(consumers.beat("a", 1)) == {T: [0, 1, 2, 3]}

    run(world, scenario())


def test_expression_does_not_match_topics_that_the_member_may_not_describe(world, consumers):
    """They are left out, as in Kafka; the next lookup has the rights of the time then."""

    async def scenario():
        consumers.start()
        consumers.may_describe = lambda name: name != "u"
        consumers.beat("a", subscribed_topic_regex="[tu]")
        await consumers.sleep(0.001)
        assert partitions_in(consumers.beat("a", 1)) == {T: [0, 1, 2, 3]}
        consumers.may_describe = None
        consumers.grow("v", V, 1)
        await consumers.sleep(10.001)
        consumers.beat("a", 2)
        await consumers.sleep(0.001)
        assert partitions_in(consumers.beat("a", 2)) == {T: [0, 1, 2, 3], U: [0, 1, 2, 3]}

    run(world, scenario())


def test_member_receives_the_topics_of_the_member_that_began_the_lookup(world, consumers):
    """A second principal with the same expression has the same topics until the next lookup, which
    has the rights of the member whose heartbeat begins it.
    """

    async def scenario():
        consumers.start()
        consumers.configure(group_consumer_regex_refresh_interval_ms=20_000)
        consumers.may_describe = lambda name: name != "u"
        consumers.beat("a", subscribed_topic_regex="[tu]")
        await consumers.sleep(0.001)
        assert partitions_in(consumers.beat("a", 1)) == {T: [0, 1, 2, 3]}
        consumers.may_describe = lambda name: name != "t"
        assert consumers.beat("b", subscribed_topic_regex="[tu]").member_epoch == 3
        await consumers.sleep(0.001)
        assert consumers.group.regexes["[tu]"].topics == {"t"}
        await consumers.sleep(20)
        consumers.beat("b", 3)
        await consumers.sleep(0.001)
        assert consumers.group.regexes["[tu]"].topics == {"u"}
        assert consumers.group.epoch == 4

    run(world, scenario())


@pytest.mark.parametrize("has_lost_the_right", [False, True])
def test_changed_rights_apply_after_the_refresh_interval(world, consumers, has_lost_the_right):
    """Not before, as in Kafka; then the assignment has the topics that the member may describe."""

    def hidden(name):
        return name != "u"

    before, after = (None, hidden) if has_lost_the_right else (hidden, None)
    shown, both = {T: [0, 1, 2, 3]}, {T: [0, 1, 2, 3], U: [0, 1, 2, 3]}

    async def scenario():
        consumers.start()
        consumers.may_describe = before
        consumers.beat("a", subscribed_topic_regex="[tu]")
        await consumers.sleep(0.001)
        assert partitions_in(consumers.beat("a", 1)) == (both if has_lost_the_right else shown)
        consumers.may_describe = after
        for _ in range(20):
            await consumers.sleep(29.9)
            assert partitions_in(consumers.beat("a", 2)) is None
        await consumers.sleep(3)
        consumers.beat("a", 2)
        await consumers.sleep(0.001)
        assert partitions_in(consumers.beat("a", 2)) == (shown if has_lost_the_right else both)

    run(world, scenario())


def test_lookup_of_a_classic_member_leaves_out_topics_that_it_may_not_describe(world, consumers):
    """Its join may begin the lookup of the expressions of other members."""

    async def scenario():
        consumers.start()
        consumers.beat("a", subscribed_topic_regex="[tuv]")
        await consumers.sleep(0.001)
        assert partitions_in(consumers.beat("a", 1)) == {T: [0, 1, 2, 3], U: [0, 1, 2, 3]}
        consumers.may_describe = lambda name: name != "u"
        consumers.grow("v", V, 1)
        await consumers.sleep(10.001)
        consumers.join()
        await consumers.sleep(0.001)
        assert consumers.group.regexes["[tuv]"].topics == {"t", "v"}

    run(world, scenario())


def test_new_topics_are_found_after_ten_seconds(world, consumers):
    """All expressions of a group are resolved together, at most every ten seconds."""

    async def scenario():
        consumers.start()
        consumers.beat("a", subscribed_topic_regex="t.*")
        await consumers.sleep(0.001)
        consumers.beat("a", 1)
        consumers.grow("tt", V, 1)
        for _ in range(2):
            await consumers.sleep(4)
            assert partitions_in(consumers.beat("a", 2)) is None
        await consumers.sleep(4)
        consumers.beat("a", 2)
        await consumers.sleep(0.001)
        assert partitions_in(consumers.beat("a", 2)) == {T: [0, 1, 2, 3], V: [0]}

    run(world, scenario())


def test_member_with_a_known_expression_joins_without_a_lookup(world, consumers):
    """A resolved expression is reused, and forgotten when its last member leaves."""

    async def scenario():
        consumers.start()
        consumers.beat("a", subscribed_topic_regex="t")
        await consumers.sleep(0.001)
        consumers.beat("a", 1)
        assert consumers.beat("b", subscribed_topic_regex="t").member_epoch == 3
        assert set(consumers.group.regexes) == {"t"}
        consumers.beat("b", -1)
        consumers.beat("a", -1)
        assert consumers.group.regexes == {}

    run(world, scenario())


def test_expression_can_be_replaced_by_names(world, consumers):
    """A member that switches to names loses the topics that only the expression matched."""

    async def scenario():
        consumers.start()
        consumers.beat("a", subscribed_topic_regex="[tu]")
        await consumers.sleep(0.001)
        consumers.beat("a", 1)
        changed = consumers.beat("a", 2, subscribed_topic_names=["u"], subscribed_topic_regex="")
        assert partitions_in(changed) == {U: [0, 1, 2, 3]}
        assert consumers.group.regexes == {}

    run(world, scenario())


def test_invalid_expression_is_rejected(world, consumers):
    """RE2 has no look-around, so matching always takes linear time."""

    async def scenario():
        consumers.start()
        for regex in ("(", "[", "(?=a)b", "a**"):
            response = consumers.beat("a", subscribed_topic_regex=regex)
            assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert consumers.group is None

    run(world, scenario())
