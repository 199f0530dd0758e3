"""Landing: what a table's writers and the readers before them make of every order of events."""
