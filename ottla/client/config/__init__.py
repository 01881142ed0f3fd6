"""Configuration of clients: Kafka's option names, as keyword arguments, dicts or .properties files."""
