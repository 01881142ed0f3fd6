"""The feature levels of Apache Kafka's releases, which `kafka-storage` prints; pure.

Follows org.apache.kafka.server.common: Feature, MetadataVersion and KRaftVersion of 4.3.0.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.base.errors import ConfigError
from ottla.client.admin.features import FIRST_LEVEL, METADATA_VERSION, RELEASES, level_text

KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION, GROUP_VERSION = "transaction.version", "group.version"
# The last release is not stable yet.
_STABLE = RELEASES[:-1]
FIRST_WITH_SCRAM = FIRST_LEVEL + RELEASES.index("3.5-IV2")
LATEST = FIRST_LEVEL + len(_STABLE) - 1
_SHORT_MAX, _SHORT_DIGITS = (1 << 15) - 1, 5


class _Levels(NamedTuple):
    """The highest level of a feature, and the level of new clusters from a metadata version on."""

    highest: int
    default: int
    since: int


_FEATURES = {
    KRAFT_VERSION: _Levels(1, 1, 21),
    TRANSACTION_VERSION: _Levels(2, 2, 24),
    GROUP_VERSION: _Levels(1, 1, 22),
    "eligible.leader.replicas.version": _Levels(1, 1, 26),
    "share.version": _Levels(1, 1, 28),
    "streams.version": _Levels(1, 1, 29),
}
# The only level that depends on another feature's.
_DEPENDENT = ("eligible.leader.replicas.version", 1)
_NEEDED = 23
# Without effect on a broker of Ottla, whatever their level.
_OF_KRAFT = (METADATA_VERSION, KRAFT_VERSION)
_OF_OTTLA = (TRANSACTION_VERSION, GROUP_VERSION)


def level_of(release: str, *, with_unstable: bool) -> int:
    """Return the level of a release such as 4.1 or 4.1-IV0; ConfigError lists the known ones."""
    known = RELEASES if with_unstable else _STABLE
    if release in known:
        return FIRST_LEVEL + known.index(release)
    levels = [
        FIRST_LEVEL + at for at, name in enumerate(_STABLE) if name.partition("-")[0] == release
    ]
    if not levels:
        raise ConfigError(
            f"Unknown metadata.version '{release}'. Supported metadata.version are: "
            f"{', '.join(known)}"
        )
    return levels[-1]


def default_levels(metadata_level: int) -> dict[str, int]:
    """Return the levels of a new cluster."""
    return {
        name: feature.default if metadata_level >= feature.since else 0
        for name, feature in _FEATURES.items()
    }


def mapping(release: str | None) -> tuple[str, dict[str, int]]:
    """Return a release as text, and its levels; without a release, the levels of the latest one."""
    level = LATEST if release is None else level_of(release, with_unstable=True)
    text = level_text(METADATA_VERSION, level) if release is None else release
    return text, {METADATA_VERSION: level, **default_levels(level)}


def mapping_lines(release: str | None) -> Sequence[str]:
    """Return the lines about the levels of a release."""
    text, levels = mapping(release)
    return [
        f"{name}={level}" + (f" ({text})" if name == METADATA_VERSION else "")
        for name, level in levels.items()
    ]


def parse_level(text: str) -> tuple[str, int]:
    """Return name and level of `feature=level`."""
    name, equals, level = text.partition("=")
    if not equals:
        raise ConfigError(f"Can't parse feature=level string {text}: equals sign not found.")
    if not is_short(level.strip()):
        raise ConfigError(
            f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short."
        )
    return name.strip(), int(level)


def levels_to_format(
    release: str | None, chosen: Mapping[str, int], *, is_dynamic: bool
) -> dict[str, int]:
    """Return the levels of a cluster that is formatted, the level of metadata.version included.

    `is_dynamic`: the quorum is not named by controller.quorum.voters. ConfigError for levels that
    Apache Kafka does not have, or that Ottla's broker does not have.
    """
    metadata_level = _metadata_level(release, chosen)
    for name in chosen:
        if name not in _FEATURES and name != METADATA_VERSION:
            supported = ", ".join(sorted(_FEATURES))
            raise ConfigError(f"Unsupported feature: {name}. Supported features are: {supported}")
    levels = {METADATA_VERSION: metadata_level, **default_levels(metadata_level), **chosen}
    levels[KRAFT_VERSION] = _kraft_level(chosen.get(KRAFT_VERSION), is_dynamic=is_dynamic)
    for name, level in sorted(levels.items()):
        if name != METADATA_VERSION and not 0 <= level <= _FEATURES[name].highest:
            raise ConfigError(f"No feature:{name} with feature level {level}")
        if (name, level) == _DEPENDENT and metadata_level < _NEEDED:
            raise ConfigError(
                f"{name} could not be set to {level} because it depends on {METADATA_VERSION} "
                f"level {_NEEDED}"
            )
    for name, level in chosen.items():
        if level and name not in (*_OF_KRAFT, *_OF_OTTLA):
            raise ConfigError(
                f"{name} cannot be set to {level}: Ottla's broker does not have the feature; omit "
                "the option, or set the level 0"
            )
    return levels


def _metadata_level(release: str | None, chosen: Mapping[str, int]) -> int:
    level = chosen.get(METADATA_VERSION)
    if level is None:
        return LATEST if release is None else level_of(release, with_unstable=False)
    if release is not None:
        raise ConfigError(
            f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid ambiguity."
        )
    if not FIRST_LEVEL <= level < FIRST_LEVEL + len(RELEASES):
        raise ConfigError(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from "
            f"{FIRST_LEVEL} to {FIRST_LEVEL + len(RELEASES) - 1}."
        )
    if level > LATEST:
        text = level_text(METADATA_VERSION, level)
        raise ConfigError(f"{METADATA_VERSION} {text} is not yet stable.")
    return level


def _kraft_level(chosen: int | None, *, is_dynamic: bool) -> int:
    if chosen is None or (chosen > 0) == is_dynamic:
        return int(is_dynamic) if chosen is None else chosen
    if is_dynamic:
        raise ConfigError(
            f"Cannot set {KRAFT_VERSION} to 0 if controller.quorum.voters is empty and one of the "
            "flags --standalone, --initial-controllers, or --no-initial-controllers is used. For "
            f"dynamic controllers support, try removing the --feature flag for {KRAFT_VERSION}."
        )
    raise ConfigError(
        f"Cannot set {KRAFT_VERSION} to {chosen} unless controller.quorum.voters is empty and one "
        "of the flags --standalone, --initial-controllers, or --no-initial-controllers is used. "
        "For dynamic controllers support, try using one of --standalone, --initial-controllers, "
        "or --no-initial-controllers and removing controller.quorum.voters."
    )


def stored_levels(levels: Mapping[str, int]) -> dict[str, int]:
    """Return the levels that a broker of Ottla stores."""
    return {name: levels[name] for name in _OF_OTTLA}


def bootstrap_text(levels: Mapping[str, int]) -> str:
    """Return the records that KRaft's metadata log begins with, as Java prints them."""
    rest = sorted(name for name in levels.keys() - set(_OF_KRAFT) if levels[name])
    records = [
        f"ApiMessageAndVersion(FeatureLevelRecord(name='{name}', featureLevel={levels[name]}) at "
        "version 0)"
        for name in (METADATA_VERSION, *rest)
    ]
    return (
        f"Bootstrap metadata: BootstrapMetadata(records=[{', '.join(records)}], "
        f"metadataVersionLevel={levels[METADATA_VERSION]}, source=format command)"
    )


def dependencies_text(name: str, level: int) -> Sequence[str]:
    """Return the lines about the dependencies of a level; ConfigError if the feature is unknown.

    ValueError if the feature does not have the level.
    """
    if name == METADATA_VERSION:
        if not FIRST_LEVEL <= level < FIRST_LEVEL + len(RELEASES):
            raise ConfigError(f"Unknown {METADATA_VERSION} {level}")
        return [f"{name}={level} ({level_text(name, level)}) has no dependencies."]
    if name not in _FEATURES:
        raise ConfigError(f"Unknown feature: {name}")
    if not 0 <= level <= _FEATURES[name].highest:
        raise ValueError(level)
    if (name, level) == _DEPENDENT:
        needed = level_text(METADATA_VERSION, _NEEDED)
        return [f"{name}={level} requires:", f"    {METADATA_VERSION}={_NEEDED} ({needed})"]
    return [f"{name}={level} has no dependencies."]


def is_short(text: str) -> bool:
    """Return True if a text is a number of Java's type short."""
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) <= _SHORT_DIGITS and int(digits) <= _SHORT_MAX
