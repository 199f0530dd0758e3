"""Delta tables through Spark Connect, as their writers and their readers need them."""
