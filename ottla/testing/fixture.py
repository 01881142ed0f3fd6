"""The pytest plugin: registers the fixture `ottla_cluster`."""
