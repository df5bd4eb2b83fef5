"""Where the example notebooks are: in the package, or in the repository that it stands in."""

from __future__ import annotations

from pathlib import Path


def folder() -> Path:
    """The folder with the examples.

    Raises:
      FileNotFoundError: if they are in neither place.
    """
    here = Path(__file__).resolve().parent
    for place in (here / "notebooks", here.parents[1] / "examples"):
        if (place / "quickstart.ipynb").is_file():
            return place
    raise FileNotFoundError("the examples are not installed; install Perspex from its wheel")
