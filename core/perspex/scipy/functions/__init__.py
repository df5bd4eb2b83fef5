"""The functions of `perspex.scipy.special`, by subject."""
