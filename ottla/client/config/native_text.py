"""Which texts librdkafka's binding takes as they are."""


def is_native_text(text: str) -> bool:
    """Return False for a text that librdkafka's binding would cut, or that would end the process."""
    try:
        # Only for its exception.
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
