"""Records, topics and names that tools show, copy and convert wrongly, each with the reason.

    from ottla.testing import Cluster
    from ottla.testing.corpus import write_corpus

    with Cluster(options=CLUSTER_OPTIONS) as cluster, cluster.admin() as brokers:
        write_corpus(brokers)

`fixed_records` returns the same records for the same seed; `ottla.testing.corpus.strategies` has
Hypothesis strategies for more of them. A tool is right if it shows or copies the records that a
plain consumer reads, byte for byte.
"""

from ottla.testing.corpus.names import GROUPS, TRANSACTIONAL_IDS
from ottla.testing.corpus.records import AwkwardRecord, fixed_records
from ottla.testing.corpus.topics import CLUSTER_OPTIONS, CorpusTopic, corpus_topics
from ottla.testing.corpus.writing import write_corpus

__all__ = [
    "CLUSTER_OPTIONS",
    "GROUPS",
    "TRANSACTIONAL_IDS",
    "AwkwardRecord",
    "CorpusTopic",
    "corpus_topics",
    "fixed_records",
    "write_corpus",
]
