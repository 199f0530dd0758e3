"""The same bounce and the same growth, for today's consumer groups and for binwright."""
