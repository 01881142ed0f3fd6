"""Floor 0: instruments that count, and the text in which Prometheus reads them; knows no broker."""
