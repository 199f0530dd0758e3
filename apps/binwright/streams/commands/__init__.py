"""Streams and recordings on the command line: how one is named and opened; the commands."""
