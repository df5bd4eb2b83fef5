"""The command `perspex`: opens JupyterLab, runs notebooks, and says what is wrong.

It imports nothing but Python's own library until a subcommand needs more, so that it answers at
once, and also where a part of what Perspex needs is missing. What it says of itself is in
`arguments`; each subcommand is a module.
"""

from perspex_command.arguments import main as main
