"""The audit: whether every record of a topic landed in its table, and only once.

Compares the offsets of topics with the rows of tables, and reads from the history of a table which
log each row came from.
"""
