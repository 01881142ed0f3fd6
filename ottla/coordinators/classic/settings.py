"""The broker options that a classic group requires."""

from typing import NamedTuple


class MachineSettings(NamedTuple):
    """Times are in milliseconds.

    A new member's join is cancelled after `new_member_join_timeout_ms`: the coordinator cannot
    detect that a waiting client has disconnected.
    """

    initial_rebalance_delay_ms: int = 0
    max_size: int = 2**31 - 1
    new_member_join_timeout_ms: int = 5 * 60 * 1000
