"""Moves: stop, acknowledge, start, for partitions and for the writer roles of tables.

Decides which commands bring the group from the present owners to the wanted ones, and in which
order. May import the controller's group, ownership and events, the protocol's messages, and how
the packing spreads partitions; not `plans`: the reasons of a plan do not matter here.
"""
