"""The Avro options of a pipeline file: the schema (inline or in a file), and a schema registry."""

from pathlib import Path

from ottla.streams.model.errors import SerializationError, StreamsError
from ottla.streams.pipelines.document import Text
from ottla.streams.pipelines.fields import Fields
from ottla.streams.pipelines.model import Avro
from ottla.streams.serdes import Serdes


def read_avro(fields: Fields, kind: str, *, required: str = "") -> Avro | None:
    """Return the Avro options if the format is avro; `required` is the message if they are missing."""
    schema, registry = fields.text("avro"), fields.text("registry")
    sources = {"avro": schema, "registry": registry}
    if kind != "avro":
        for name, result in sources.items():
            if result is not None:
                fields.error(name, f"{name} requires format avro, not {kind}.")
        return None
    if registry is not None and not registry.text.startswith(("http://", "https://")):
        fields.problems.error(
            registry.position, f"{fields.subject}: registry must begin with http:// or https://."
        )
    if required and schema is None and registry is None:
        fields.error("format", required)
    return Avro(
        schema="" if schema is None else _schema(schema, fields),
        registry="" if registry is None else registry.text,
    )


def _schema(source: Text, fields: Fields) -> str:
    """Return an Avro schema; a text that is not JSON is the path of a file."""
    text = source.text
    if not text.lstrip().startswith(("{", "[", '"')):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            message = (
                f"avro: {source.text} cannot be read: {reason}. Use a path, or the schema itself."
            )
            fields.problems.error(source.position, f"{fields.subject}: {message}")
            return ""
    try:
        Serdes.avro(text)
    except (StreamsError, SerializationError, ImportError) as error:
        fields.problems.error(source.position, f"{fields.subject}: avro: {error}")
    return text
