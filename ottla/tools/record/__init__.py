"""`ottla produce` and `ottla consume`: records between topics and pipes, with kcat's habits."""
