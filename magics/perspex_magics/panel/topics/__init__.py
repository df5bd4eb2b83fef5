"""What the panel shows, one module for each table; `topic` says what a topic is."""
