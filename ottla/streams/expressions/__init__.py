"""Functions and Column expressions of users, and how they are evaluated in Python."""
