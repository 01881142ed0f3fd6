"""One module per API, named as in the protocol; none imports another; each lists its limitations."""
