"""Arguments that Perspex does not take."""

from __future__ import annotations

import pytest

from perspex.arguments.refused import check_no_out


def test_nothing_asked_for_nothing_refused() -> None:
    check_no_out("sum", None)


def test_what_is_refused_says_what_to_do() -> None:
    # The first words are those of real jax.
    with pytest.raises(NotImplementedError, match="^The 'out' argument to jnp.sum is not"):
        check_no_out("sum", 0)
