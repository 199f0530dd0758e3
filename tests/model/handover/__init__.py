"""The hand-over: what controllers and consumers make of every order of their messages."""
