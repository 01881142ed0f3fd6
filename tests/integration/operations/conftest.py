"""Fixtures of operations: those of the console's model."""

from tests.integration.console.model.conftest import cluster, connection, topic

__all__ = ("cluster", "connection", "topic")
