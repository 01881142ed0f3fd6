"""SaslHandshake (API key 17): choose a SASL mechanism.

Versions 0-1, not flexible; what each one added:

    1     the exchange continues in SaslAuthenticate requests (KIP-152)
"""

from ottla.wire.schema import Message, array, int16, string


class SaslHandshakeRequest(Message, api_key=17, versions=(0, 1)):
    """Request of SaslHandshake."""

    mechanism: str = string()


class SaslHandshakeResponse(Message, api_key=17, versions=(0, 1)):
    """Response of SaslHandshake."""

    error_code: int = int16()
    mechanisms: list[str] = array(string)
