"""The default address and log directory of a broker that `ottla up` starts."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_DATA = "./ottla-data"
CONSOLE_PORT = 8080
