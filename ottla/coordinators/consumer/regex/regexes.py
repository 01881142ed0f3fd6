"""Subscriptions by regular expression: the scheduling of lookups, and their results.

The lookup is not part of a heartbeat, because it iterates over all topics. Its result is a separate
decision, so the next heartbeat returns the assignment. All expressions of a group are looked up
together, at most every ten seconds. Follows maybeUpdateRegularExpressions and
handleRegularExpressionsResult.
"""

from collections import Counter
from collections.abc import Mapping
from enum import Enum

from ottla.coordinators.consumer.assignment import topics
from ottla.coordinators.consumer.changes import GroupChange, GroupEpoch, RegexChange
from ottla.coordinators.consumer.regex import patterns
from ottla.coordinators.consumer.state import Member, ResolvedRegex
from ottla.coordinators.consumer.transition import Transition

LOOKUP_INTERVAL_MS = 10_000


class RegexUpdate(Enum):
    """The effect of a member's request on its expression."""

    NONE = "none"
    # The topics of the new one are not known yet.
    CHANGED = "changed"
    CHANGED_AND_KNOWN = "changed and known"


def update(
    transition: Transition, old: Member, member: Member, *, is_looking_up: bool
) -> RegexUpdate:
    """Store a member's expression, and request a lookup if one is due.

    Raises INVALID_REGULAR_EXPRESSION if the expression is invalid.
    """
    result, is_new = _change(transition, old, member)
    group = transition.group
    if is_looking_up or not (is_new or group.regex_uses):
        return result
    counts = Counter(group.regex_uses)
    counts.subtract([old.subscribed_regex] if old.subscribed_regex else ())
    counts.update([member.subscribed_regex] if member.subscribed_regex else ())
    names = frozenset(name for name, count in counts.items() if count > 0)
    if not names:
        return result
    last = next(iter(group.regexes.values()), None)
    if last is not None and transition.now_ms <= last.timestamp_ms + LOOKUP_INTERVAL_MS:
        return result
    is_due = (
        is_new
        or len(names) != len(group.regexes)
        or last is None
        or last.version < transition.topics.version
        or transition.now_ms > last.timestamp_ms + transition.settings.regex_refresh_interval_ms
    )
    if is_due:
        transition.regexes_wanted = names
    return result


def _change(transition: Transition, old: Member, member: Member) -> tuple[RegexUpdate, bool]:
    """Return the effect on the expression, and whether it is new to the group."""
    before, now = old.subscribed_regex, member.subscribed_regex
    if before == now:
        return RegexUpdate.NONE, False
    group = transition.group
    uses = group.regex_uses
    if before and uses[before] == 1:
        transition.changes.append(RegexChange(group.group_id, before, None))
    if not now:
        return (RegexUpdate.CHANGED_AND_KNOWN if before else RegexUpdate.CHANGED), False
    if not uses[now]:
        patterns.check(now)
        return RegexUpdate.CHANGED, True
    is_known = now in group.regexes
    return (RegexUpdate.CHANGED_AND_KNOWN if is_known else RegexUpdate.CHANGED), False


def looked_up(transition: Transition, resolved: Mapping[str, ResolvedRegex]) -> None:
    """Store the matched topics, and begin a new epoch if members read other topics than before."""
    group = transition.group
    uses = group.subscriptions()
    must_bump = False
    names = set(uses.topics)
    for regex in uses.regexes:
        old, new = group.regexes.get(regex), resolved.get(regex)
        if new is not None:
            must_bump = must_bump or new.topics != (old.topics if old else frozenset())
            transition.changes.append(RegexChange(group.group_id, regex, new))
        current = new or old
        names |= current.topics if current else frozenset()
    metadata_hash = topics.metadata_hash(transition.topics.image, names)
    if must_bump or metadata_hash != group.metadata_hash:
        epoch = group.epoch + 1
        transition.changes.append(GroupChange(group.group_id, GroupEpoch(epoch, metadata_hash)))
        transition.checked_at_epoch = epoch
        transition.note(f"epoch={epoch}: regular expressions match other topics")
