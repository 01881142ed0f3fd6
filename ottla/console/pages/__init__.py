"""The pages of the console, one module for each: functions from a `View` to data, and actions."""
