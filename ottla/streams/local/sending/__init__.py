"""Writes the results and the changelogs of a worker's tasks."""
