"""What a night shows: chaos with seeds that nobody chose, and ratios that must not creep."""
