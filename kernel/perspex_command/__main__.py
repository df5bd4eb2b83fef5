"""`python -m perspex_command`: the command where its script is not on the path."""

import sys

from perspex_command.arguments import main

sys.exit(main())
