"""A running console: its settings, its clusters and its accounts."""

from dataclasses import dataclass, field
from pathlib import Path

from ottla.base.clock import Clock, RealClock
from ottla.base.files import RealFileSystem
from ottla.console.accounts.attempts import LoginAttempts
from ottla.console.accounts.audit import AuditLog
from ottla.console.accounts.database import Database
from ottla.console.accounts.login_links import LoginLink
from ottla.console.accounts.masking import Masking
from ottla.console.accounts.rights import Rights
from ottla.console.accounts.sessions import Sessions
from ottla.console.accounts.users import Users
from ottla.console.alerts.addresses import Network
from ottla.console.alerts.alerting import Alerts
from ottla.console.alerts.rules import Rule
from ottla.console.catalogue import ClusterCatalogue
from ottla.console.history.store import History
from ottla.console.locks import ClusterLocks
from ottla.console.moves.throttled import ThrottledMoves
from ottla.console.notices import Notices
from ottla.console.oidc.logins import OidcLogins
from ottla.console.oidc.provider import IdentityProvider
from ottla.console.oidc.settings import OidcSettings
from ottla.console.plans import Plans
from ottla.console.sampler import SAMPLES_S, Sampler
from ottla.console.sql.queries import Queries
from ottla.console.streams.uploads import TopologyUploads
from ottla.console.timeline.store import TimelineStore
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The settings of a console: the address it listens on, its file, and its clusters.

    `database` may be `:memory:`. With `is_read_only` no user may change a cluster. Port 0 is any
    free port. `first_password` is the password of the first admin; without one it is random. A page
    waits `timeout_s` for a cluster. Histories have a point in `sample_s` seconds.
    Alert channels reach loopback and link-local addresses only in `allowed_networks`. With
    `allows_insecure` the console may listen on an address that others can reach. `first_rules` are
    the alert rules of a new file. With `oidc`, users of an identity provider may log in, too. With
    `has_login_link`, the first admin has no password, but a link in the output of the start.
    """

    clusters: tuple[ClusterSettings, ...]
    database: str | Path
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    is_read_only: bool = False
    first_password: str | None = None
    timeout_s: float = 5.0
    sample_s: float = SAMPLES_S
    allowed_networks: tuple[Network, ...] = ()
    allows_insecure: bool = False
    first_rules: tuple[Rule, ...] = ()
    oidc: OidcSettings | None = None
    has_login_link: bool = False


@dataclass(slots=True)
class Console:
    """The objects that all pages share."""

    settings: ConsoleSettings
    clock: Clock
    clusters: ClusterCatalogue
    database: Database
    users: Users
    sessions: Sessions
    audit: AuditLog
    masking: Masking
    rights: Rights
    plans: Plans
    history: History
    alerts: Alerts
    queries: Queries
    sampler: Sampler
    timeline: TimelineStore
    topologies: TopologyUploads
    throttled_moves: ThrottledMoves
    locks: ClusterLocks
    oidc_logins: OidcLogins
    identity_provider: IdentityProvider | None = None
    attempts: LoginAttempts = field(default_factory=LoginAttempts)
    notices: Notices = field(default_factory=Notices)
    one_time_password: str | None = None
    login_link: LoginLink = field(default_factory=LoginLink)

    def close(self) -> None:
        """Stop the samples, and close the connections and the file."""
        self.queries.close()
        self.sampler.stop()
        self.alerts.close()
        self.clusters.close()
        self.database.close()


def open_console(settings: ConsoleSettings, clock: Clock | None = None) -> Console:
    """Open the file and the clusters; no broker is contacted yet."""
    clock = clock or RealClock()
    database = Database(settings.database)
    users = Users(database, clock)
    clusters = ClusterCatalogue()
    for cluster in settings.clusters:
        clusters.add(ClusterConnection(cluster, timeout_s=settings.timeout_s))
    history = History(database)
    alerts = Alerts(database, clusters, clock, settings.allowed_networks, settings.first_rules)
    timeline = TimelineStore(database)
    locks = ClusterLocks(settings.database, RealFileSystem())
    audit = AuditLog(database, clock)
    throttled_moves = ThrottledMoves(database, clusters, audit)
    listeners = [timeline, history, alerts, throttled_moves]
    sessions = Sessions(database, users, clock)
    return Console(
        settings,
        clock,
        clusters,
        database,
        users,
        sessions,
        audit,
        Masking(database),
        Rights(database),
        Plans(clock),
        history,
        alerts,
        Queries(clock),
        Sampler(clusters, listeners, locks, clock, settings.sample_s),
        timeline,
        TopologyUploads(database, clock),
        throttled_moves,
        locks,
        OidcLogins(database, users, sessions, clock),
        None if settings.oidc is None else IdentityProvider(settings.oidc, clock),
        one_time_password=users.create_first(
            settings.first_password, has_login_link=settings.has_login_link
        ),
    )
