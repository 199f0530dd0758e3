"""Faults drawn from a seed, on the real broker, Spark Connect and processes, under load."""
