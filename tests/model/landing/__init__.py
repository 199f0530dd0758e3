"""Landing: a table's writers, and the readers that stage for them, under any order of events."""
