"""Double precision where a test asks for it."""

from support.checks import x64 as x64
