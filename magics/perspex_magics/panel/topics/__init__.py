"""The tables that the panel shows, one module for each; `topic` has their base class."""
