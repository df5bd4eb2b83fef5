"""How long cells and lines take on the device."""
