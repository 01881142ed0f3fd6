"""`ottla topic search`: in the brokers if they serve /search (docs/http.md), else by reading the topic."""
