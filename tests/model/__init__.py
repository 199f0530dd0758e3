"""The product's own pure code explored state by state: `python -m tests.model`."""
