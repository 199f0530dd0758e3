"""What simulations are run with: the settings that are tried, and times taken from them."""
