"""A group, folded from its topics: what its controller decides by, and what others see of it."""
