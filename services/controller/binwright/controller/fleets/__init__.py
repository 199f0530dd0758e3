"""Where consumers run."""
