"""The pages of the improvement proposals (KIPs) that lessons name."""

from collections.abc import Mapping

from ottla.learn.events import Text

_WIKI = "https://cwiki.apache.org/confluence/display/KAFKA/"
_PAGES: Mapping[int, str] = {
    33: "KIP-33+-+Add+a+time+based+log+index",
    62: "KIP-62%3A+Allow+consumer+to+send+heartbeats+from+a+background+thread",
    91: "KIP-91+Provide+Intuitive+User+Timeouts+in+The+Producer",
    298: "KIP-298%3A+Error+Handling+in+Connect",
    345: "KIP-345%3A+Introduce+static+membership+protocol+to+reduce+consumer+rebalances",
    392: "KIP-392%3A+Allow+consumers+to+fetch+from+closest+replica",
    429: "KIP-429%3A+Kafka+Consumer+Incremental+Rebalance+Protocol",
    500: "KIP-500%3A+Replace+ZooKeeper+with+a+Self-Managed+Metadata+Quorum",
    534: "KIP-534%3A+Retain+tombstones+and+transaction+markers+for+approximately+delete.retention.ms+milliseconds",
    966: "KIP-966%3A+Eligible+Leader+Replicas",
}


def link(number: int) -> str:
    """Return the address of a KIP."""
    return f"{_WIKI}{_PAGES[number]}"


def explained(number: int, en: str, zh: str) -> Text:
    """Return an explanation that ends with the address of its KIP."""
    return Text(f"{en} KIP-{number}: {link(number)}", f"{zh} KIP-{number}：{link(number)}")
