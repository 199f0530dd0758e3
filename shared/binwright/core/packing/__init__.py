"""Who reads what: rates, capacity and the current assignment to a new assignment."""
