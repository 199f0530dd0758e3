"""Fakes: in-memory implementations of the ports, with failures on demand."""
