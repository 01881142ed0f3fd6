"""`ottla quota …`: limits of users, clients and addresses."""
