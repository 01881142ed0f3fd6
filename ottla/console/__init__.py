"""The console: clusters in a browser and as a REST API, for Ottla and Apache Kafka alike.

`model/` reads and changes clusters through `ottla.client` and returns values; `api/` serves them as
JSON. Nothing here imports the broker.
"""
