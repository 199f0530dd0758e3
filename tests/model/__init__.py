"""The real core explored state by state, on logs that are lists: `python -m tests.model`."""
