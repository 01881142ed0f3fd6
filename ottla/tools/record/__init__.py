"""`ottla produce` and `ottla consume`: records between topics and pipes, in the style of kcat."""
