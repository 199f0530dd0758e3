"""Fakes that fit the ports: dictionaries with a little truth in them."""
