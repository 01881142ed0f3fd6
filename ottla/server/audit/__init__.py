"""The audit log of a broker: who changed what, who was denied, and which logins failed.

`record` is the shape of a line, `limits` bounds the lines that clients can provoke, `changes` and
its siblings decide which requests are audited (all three are pure). `log` writes, and `auditing`
wraps the handlers of administrative APIs.
"""
