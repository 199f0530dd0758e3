"""Transitions: what the controller does at each event, one module per state.

`common` holds what several states share, `records` what every state after Synchronize does with a
record of partition 0. May import all of the controller but `machine`, which lists these functions.
"""
