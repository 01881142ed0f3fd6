"""Functions and Column expressions of users, and their evaluation in Python."""
