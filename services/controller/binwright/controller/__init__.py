"""Decides who reads what, and sees to it."""
