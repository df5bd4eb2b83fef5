"""How arrays lie on devices: the tiles that a mesh cuts them into, and what XLA says of them."""
