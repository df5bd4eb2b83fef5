"""What happens inside, as it happens: traces, lowerings, compilations, cache misses, transfers.

>>> import perspex
>>> stop = perspex.events.subscribe(lambda event: print(event.kind, event.name), ["trace"])
>>> def square(x):
...     return x * x
>>> print(perspex.jit(square)(3.0))
trace square
9.0
>>> stop()
"""

from perspex.base.events import Event as Event
from perspex.base.events import audience as audience
from perspex.base.events import seconds_in_phases as seconds_in_phases
from perspex.base.events import subscribe as subscribe
from perspex.base.events import unheard as unheard
