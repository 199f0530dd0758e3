"""Judges what was seen of tables, and of what `doctor` examined."""
