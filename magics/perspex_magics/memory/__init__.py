"""Which arrays are alive, who holds them, and how to let go of them."""
