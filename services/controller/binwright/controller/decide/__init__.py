"""The controller of one consumer group: from events to actions.

`machine` decides which state follows which (Synchronize, Sentinel, Reassign, Group Management) and
`transitions` what happens in each. `group` is all that a controller knows; `applying` changes it by
each record of partition 0. `plans` decides whether to replace the assignment, `moves` which
commands bring partitions and tables to their new owners. May import every other package of the
core.
"""
