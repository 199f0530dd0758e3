"""The messages of the control topics, and their form on the wire.

Decides which fields each message has, which values are valid, how a message becomes a Kafka record,
and how one that is too large is split into parts.
"""
