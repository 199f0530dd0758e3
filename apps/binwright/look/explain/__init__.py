"""Answers why a group is as it is: from its topics alone, by its controller's own numbers."""
