"""Streams, load, audit: what works on recorded or finished data."""
