"""Streams and recordings on the command line: how one is named, opened, converted and played."""
