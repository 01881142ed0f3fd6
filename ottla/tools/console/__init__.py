"""`ottla console`, and the console of `ottla up --console`."""
