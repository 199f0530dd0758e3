"""Consumer groups that are not binwright's: offsets, members, and the plans that steer them.

`planned_assignor` runs inside the members of a group, in an aiokafka client; `generation_sticky` is
what it falls back to.
"""
