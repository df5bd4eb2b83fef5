"""Which platform computes: accelerators before the CPU, unless the user says otherwise.

A platform is started when it is first used. One that cannot be started is left out, with one line
that says why, unless the user asked for it by name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from perspex.base import source, xla
from perspex.base.jax_finder import finder
from perspex.errors import JaxRuntimeError
from perspex.runtime import plugins
from perspex.runtime.plugins import Plugin

# Names that stand for several platforms.
_ALIASES = {"gpu": xla.GPUS}
# The higher, the sooner; plugins that nobody knows come last but for the CPU.
_PRIORITIES = {"tpu": 300, "cuda": 200, "rocm": 200, "cpu": 0}
_UNKNOWN_PRIORITY = 100


class Platform(NamedTuple):
    """What makes the client of a platform, and how soon it is tried."""

    name: str
    make: Callable[[], Any]
    priority: int
    # Quietly: others are tried if it fails.
    may_fail: bool = True


_registered: dict[str, Platform] = {}
_plugins: dict[str, Plugin] | None = None


def register(name: str, make: Callable[[], Any], priority: int, may_fail: bool = True) -> None:
    """Add a platform, or replace the one of that name: `make` returns its client."""
    _registered[name] = Platform(name, make, priority, may_fail)


def register_plugin(
    name: str,
    library: str | None,
    priority: int = _UNKNOWN_PRIORITY,
    options: dict[str, Any] | Callable[[], dict[str, Any]] | None = None,
    api: Any = None,
    make: Callable[[], Any] | None = None,
) -> Any:
    """Add the platform of a PJRT plugin, given the path of its library, or its C API.

    `options` go to the client, when that is made; `make` makes it instead. Returns the C API.
    """
    if (library is None) == (api is None):
        raise ValueError(
            f"the plugin of the platform {name!r} needs either the path of its library or its "
            "C API, not both"
        )
    api = xla.load_plugin(name, library, api)

    def client() -> Any:
        return xla.make_plugin_client(
            name, dict((options() if callable(options) else options) or {})
        )

    register(name, make or client, priority)
    return api


def known(with_entry_points: bool = False) -> list[Platform]:
    """The platforms that are there but for the CPU, those that are tried first in front."""
    global _plugins
    if _plugins is None:
        _plugins = {}
        for plugin in plugins.installed():
            _plugins.setdefault(plugin.platform, plugin)
        _let_register(False)
    if with_entry_points:
        _let_register(True)
    found = {
        name: Platform(
            name, partial(plugins.start, plugin), _PRIORITIES.get(name, _UNKNOWN_PRIORITY)
        )
        for name, plugin in _plugins.items()
    }
    found.update(_registered)
    return sorted(found.values(), key=lambda platform: -platform.priority)


def _let_register(with_entry_points: bool) -> None:
    """Let plugins that are not known here register themselves, where `jax` means Perspex."""
    if finder.make is None:
        return
    for initialize in plugins.initializers(with_entry_points):
        try:
            initialize()
        except Exception as error:  # code of others
            _tell(f"A plugin could not register its platform: {_reason(error)}")


def names(asked: str) -> tuple[str, ...]:
    """The platforms that a name stands for."""
    return _ALIASES.get(asked, (asked,))


def start(asked: str) -> tuple[str, Any]:
    """The client of the platform that somebody asks for by its name, which is not the CPU.

    Raises:
      RuntimeError: if there is no such platform, or if it cannot be started.
    """
    wanted = names(asked)
    platforms = known()
    if not any(platform.name in wanted for platform in platforms):
        platforms = known(with_entry_points=True)
    found = [platform for platform in platforms if platform.name in wanted]
    if not found:
        there = [*[platform.name for platform in platforms], "cpu"]
        told = plugins.missing()
        raise RuntimeError(
            f"Unknown backend {asked!r}: this installation has the platforms {there}. "
            + (told or f"Use devices({there[0]!r}), or unset the `platforms` flag.")
        )
    reasons = []
    for platform in found:
        try:
            return platform.name, platform.make()
        except (JaxRuntimeError, RuntimeError, OSError, ImportError) as error:
            reasons.append(f"Unable to initialize backend {platform.name!r}: {_reason(error)}")
    raise RuntimeError(". ".join(reasons) + ". PERSPEX_PLATFORMS=cpu computes on the CPU instead.")


def best() -> tuple[str, Any] | None:
    """The first platform that can be started, with its client; `None` if that is the CPU.

    Says once what keeps an accelerator from computing that is there.
    """
    platforms = [platform for platform in known() if platform.priority > 0]
    for platform in platforms:
        try:
            return platform.name, platform.make()
        except (JaxRuntimeError, RuntimeError, OSError, ImportError) as error:
            if not platform.may_fail:
                raise
            _tell(
                f"The platform {platform.name!r} cannot be used: {_reason(error)}. Perspex "
                "computes elsewhere; PERSPEX_PLATFORMS=cpu silences this line."
            )
    if not platforms and (told := plugins.missing()):
        _tell(told)
    return None


def _reason(error: BaseException) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")


def _tell(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=source.stacklevel())
