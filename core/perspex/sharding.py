"""How arrays are placed on devices: `jax.sharding`."""

from perspex.runtime.client import Sharding as Sharding
from perspex.runtime.client import SingleDeviceSharding as SingleDeviceSharding
