"""The rights to read records: the one place that decides which masking rules apply to a user.

Data that was read with these rights belongs to their session: a result, a stream or a download ends
with it, and when the role of the user or a rule changes.
"""

from typing import NamedTuple

from ottla.console.accounts.masking import Masking
from ottla.console.accounts.rights import Right, Rights, role_in
from ottla.console.accounts.roles import Role
from ottla.console.accounts.sessions import Sessions
from ottla.console.accounts.users import User
from ottla.console.model.messages.masking import MaskingRule


class Reader(NamedTuple):
    """A user who reads records; `session` is empty for a request with a password.

    `rules` hide parts of the records, and `rights` restrict the clusters and topics if there are
    any. Two readers are equal if they have the same rights.
    """

    user: str
    session: str
    role: Role
    rules: tuple[MaskingRule, ...]
    rights: tuple[Right, ...] = ()

    def role_in(self, cluster: str, topic: str | None = None) -> Role | None:
        """Return the role in a cluster and for a topic of it; None if the user may see nothing."""
        return role_in(self.role, self.rights, cluster, topic)


def reader_of(user: User, session: str, masking: Masking, rights: Rights) -> Reader:
    """Return the rights of a user at this moment: admins read masked fields."""
    rules = () if user.role is Role.ADMIN else masking.rules()
    return Reader(user.name, session, user.role, rules, rights.of(user.name))


def is_current(reader: Reader, sessions: Sessions, masking: Masking, rights: Rights) -> bool:
    """Return True while the session lives and its user has the same rights as before."""
    user = sessions.user_of(reader.session)
    return user is not None and reader_of(user, reader.session, masking, rights) == reader
