"""The files of a bundle, each collected on its own: a part that fails is recorded as its error."""

import dataclasses
import io
import json
import platform
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import ottla
from ottla.base.errors import OttlaError
from ottla.base.files import open_private
from ottla.client.admin import cluster, configs, groups, offsets, replicas, topics, transactions
from ottla.client.brokers import Brokers
from ottla.net.web_requests import WebRequest, send_directly, url_of
from ottla.tools.debug.redaction import clean, clean_entry, clean_text
from ottla.tools.http_addresses import http_addresses

_LIBRARIES = ("click", "confluent-kafka", "cramjam", "fastcrc", "google-re2", "kazoo", "lz4",
              "pyarrow", "pyspark", "uvloop", "zstandard")  # fmt: skip
_PAGES = ("metrics", "healthz", "lag")
_PAGE_BYTES_MAX = 32 << 20
_PAGE_SECONDS = 30.0


def collect(brokers: Brokers) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files; no content has secrets."""
    parts: Mapping[str, Callable[[Brokers], Any]] = {
        "machine.json": _machine,
        "cluster.json": _cluster,
        "topics.json": _topics,
        "broker-options.json": _broker_options,
        "topic-options.json": _topic_options,
        "groups.json": _groups,
        "log-directories.json": _directories,
        "transactions.json": _transactions,
        "reassignments.json": _reassignments,
    }
    for name, part in parts.items():
        yield name, _as_json(_attempt(part, brokers))
    addresses = _attempt(http_addresses, brokers)
    if isinstance(addresses, dict) and "error" not in addresses:
        for node_id, address in addresses.items():
            for page in _PAGES:
                yield f"broker-{node_id}-{page}.txt", clean_text(_page(address, page)).encode()


def _attempt(part: Callable[[Brokers], Any], brokers: Brokers) -> Any:
    try:
        return part(brokers)
    except (OttlaError, OSError) as error:
        return {"error": str(error)}


def _as_json(value: Any) -> bytes:
    return json.dumps(clean(value), indent=2, default=str).encode() + b"\n"


def _machine(brokers: Brokers) -> dict[str, Any]:
    versions: dict[str, str | None] = {}
    for name in _LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "ottla": ottla.__version__,
        "python": sys.version,
        "system": platform.platform(),
        "time_ms": time.time_ns() // 1_000_000,
        "bootstrap": brokers.bootstrap,
        "libraries": versions,
    }


def _cluster(brokers: Brokers) -> Any:
    return _plain(cluster.describe_cluster(brokers))


def _topics(brokers: Brokers) -> Any:
    listed = topics.list_topics(brokers)
    keys = [
        (topic.name, row.partition)
        for topic in listed
        for row in topic.partitions
        if row.leader >= 0
    ]
    starts = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.EARLIEST))
    ends = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.LATEST))
    spans = {
        f"{topic}-{number}": [starts[topic, number].offset, ends[topic, number].offset]
        for topic, number in keys
    }
    return {"topics": [_plain(topic) for topic in listed], "offsets": spans}


def _broker_options(brokers: Brokers) -> dict[str, Any]:
    return {
        str(node_id): _options(brokers, configs.ResourceType.BROKER, str(node_id))
        for node_id in brokers.node_ids()
    }


def _topic_options(brokers: Brokers) -> dict[str, Any]:
    return {
        topic.name: _options(brokers, configs.ResourceType.TOPIC, topic.name)
        for topic in topics.list_topics(brokers)
    }


def _options(brokers: Brokers, kind: configs.ResourceType, name: str) -> Any:
    entries = configs.describe_config(brokers, configs.Resource(kind, name))
    return [
        [
            entry.name,
            clean_entry(entry.name, entry.value, is_sensitive=entry.is_sensitive),
            entry.source.name,
        ]
        for entry in entries
    ]


def _groups(brokers: Brokers) -> list[Any]:
    rows = []
    for listed in groups.list_groups(brokers):
        row = _plain(listed)
        committed = offsets.committed_offsets(brokers, listed.group_id, require_stable=False)
        row["offsets"] = {f"{key[0]}-{key[1]}": value.offset for key, value in committed.items()}
        rows.append(row)
    return rows


def _directories(brokers: Brokers) -> dict[str, Any]:
    return {
        str(node_id): [
            {
                "path": item.path,
                "total_bytes": item.total_bytes,
                "usable_bytes": item.usable_bytes,
                "replicas": {
                    f"{key[0]}-{key[1]}": value.size for key, value in item.replicas.items()
                },
            }
            for item in replicas.describe_log_dirs(brokers, node_id)
        ]
        for node_id in brokers.node_ids()
    }


def _transactions(brokers: Brokers) -> list[Any]:
    return [_plain(row) for row in transactions.list_transactions(brokers)]


def _reassignments(brokers: Brokers) -> dict[str, Any]:
    moves = replicas.list_partition_reassignments(brokers)
    return {f"{key[0]}-{key[1]}": _plain(row) for key, row in moves.items()}


def _plain(value: Any) -> Any:
    return dataclasses.asdict(value)


def _page(address: tuple[str, int], page: str) -> str:
    request = WebRequest(url_of(*address, f"/{page}"))
    try:
        response = send_directly(
            request, timeout_s=_PAGE_SECONDS, bytes_max=_PAGE_BYTES_MAX, is_cut=True
        )
    except OSError as error:
        return f"error: {error}\n"
    return response.body.decode(errors="replace")


def write_bundle(brokers: Brokers, path: Path) -> list[str]:
    """Write a new archive; return the names of its files. FileExistsError if it exists."""
    names = []
    with (
        open(path, "xb", opener=open_private) as stream,
        tarfile.open(fileobj=stream, mode="w:gz") as archive,
    ):
        for name, content in collect(brokers):
            entry = tarfile.TarInfo(f"{path.name.removesuffix('.tar.gz')}/{name}")
            entry.size = len(content)
            entry.mtime = int(time.time())
            archive.addfile(entry, io.BytesIO(content))
            names.append(name)
    return names
