"""One file an API, named as in the protocol; none imports another; each says what it lacks."""
