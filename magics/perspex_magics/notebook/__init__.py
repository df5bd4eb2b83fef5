"""What a cell is: its text, the names it reads, its options, and how it runs."""
