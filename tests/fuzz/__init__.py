"""Hostile inputs for everything that reads what others wrote."""
