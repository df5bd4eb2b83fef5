"""What `vjp(...)[1].with_refs` takes and returns in place of gradients."""

from perspex.api.points import DidntWant as DidntWant
from perspex.api.points import DontWant as DontWant
from perspex.api.points import GradRef as GradRef
from perspex.api.points import GradValue as GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
