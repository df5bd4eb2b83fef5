"""The intermediate representation: abstract values, programs and how they print."""
