"""Brokers of a running cluster: read into the model, planned for, moved, and shown."""
