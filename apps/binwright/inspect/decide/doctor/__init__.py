"""Judges what `binwright doctor` has found: what is wrong, and what to do about it."""
