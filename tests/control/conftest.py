"""Double precision where a test asks for it."""

from transforms.checks import x64 as x64
