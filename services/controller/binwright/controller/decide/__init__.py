"""The controller of one consumer group: from events to actions.

`machine` has what happens in each state, and which state follows which. `group` is all that a
controller knows; `apply` changes it by each record of partition 0. `plans.plan` decides what
becomes of a packing, `approval` and `drain` make the other plans; `moves` sends the commands that
bring partitions and tables to their new owners.
"""
