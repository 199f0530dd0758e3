"""Balances replicas over the brokers of a cluster: reads it, plans, moves, and shows."""
