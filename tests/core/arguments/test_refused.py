"""Arguments that Perspex does not take."""

from __future__ import annotations

import pytest

from perspex.arguments.refused import check_no_out, check_unsharded


def test_nothing_asked_for_nothing_refused() -> None:
    check_no_out("sum", None)
    check_unsharded("full", None)


def test_what_is_refused_says_what_to_do() -> None:
    # The first words are those of real jax.
    with pytest.raises(NotImplementedError, match="^The 'out' argument to jnp.sum is not"):
        check_no_out("sum", 0)
    with pytest.raises(NotImplementedError, match="^full: .*with_sharding_constraint.*device_put"):
        check_unsharded("full", False)
