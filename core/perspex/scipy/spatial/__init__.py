"""`scipy.spatial`: rotations."""

from perspex.scipy.spatial import transform as transform
