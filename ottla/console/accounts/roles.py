"""The roles of the console: each may do everything that the one before it may do."""

from enum import IntEnum


class Role(IntEnum):
    """A viewer reads, an editor also changes topics, groups and records, an admin does everything.

    Users, ACLs, quotas, brokers, ZooKeeper nodes and masking rules are for admins.
    """

    VIEWER = 1
    EDITOR = 2
    ADMIN = 3

    @property
    def label(self) -> str:
        """The role's name in forms and in the database."""
        return self.name.lower()


def parse_role(text: str) -> Role:
    """Return the role of that name; ValueError if the name is unknown."""
    for role in Role:
        if role.label == text:
            return role
    raise ValueError(f"unknown role {text!r}: use viewer, editor or admin")
