"""The version of Perspex, as the installation knows it.

The tag of a release is its version (`pyproject.toml`), so no file of the package repeats it. The
panel and `perspex doctor` read the same metadata.
"""

from __future__ import annotations

# What runs from a folder of sources that nobody installed.
UNKNOWN = "0+unknown"


def version() -> str:
    """The version in the metadata of the installed package."""
    # 10 ms for the import: nobody pays who does not ask.
    from importlib import metadata

    try:
        return metadata.version("perspex")
    except metadata.PackageNotFoundError:
        return UNKNOWN
