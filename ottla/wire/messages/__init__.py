"""One file per API: its request and response in every version."""
