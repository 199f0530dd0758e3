"""Fakes: in-memory implementations of the core's ports, with failures on demand.

Decides nothing; imported by tests only. May import the core's ports, model and errors.
"""
