"""One file per API: its request and response, every version of them."""
