"""Experiments: packings, latencies and scaling policies compared, simulations, and live timings.

Nothing here runs in production.
"""
