"""The user's names of a notebook, against all names looked through each time."""

from __future__ import annotations

import random

import pytest

import perspex.numpy as jnp
from perspex_magics.notebook.user_names import UserNames

IPYTHONS = {"_", "__", "___", "_i", "_ii", "_iii", "_oh", "_dh", "_ih", "In", "Out"}


class Thing:
    pass


def is_users(name: str) -> bool:
    numbered = name.removeprefix("_i").removeprefix("_")
    return name not in IPYTHONS and not (name.startswith("_") and numbered.isdigit())


@pytest.mark.parametrize("seed", range(5))
def test_names_come_and_go(seed: int) -> None:
    draw = random.Random(seed)
    namespace: dict[str, object] = {"In": [], "Out": {}, "_": "", "_oh": {}, "_dh": []}
    names = UserNames(namespace)
    choices = [*"abcdefgh", "_private", "_i_mine", "_12x", "In2", "_x1", "_i12x", "i12", "____"]
    for cell in range(60):
        namespace[f"_i{cell}"] = namespace["_i"] = ""
        for _ in range(draw.randrange(4)):
            name = draw.choice(choices)
            if draw.random() < 0.4:
                namespace.pop(name, None)
            else:
                namespace[name] = draw.choice([object, dict, list, Thing])()
        if draw.random() < 0.5:
            namespace[f"_{cell}"] = namespace["_"] = object()
        expected = {name: value for name, value in namespace.items() if is_users(name)}
        look = names.look()
        assert list(zip(look.names, look.values, strict=True)) == list(expected.items())
        for kind in (object, list, Thing):
            of_kind = [(name, value) for name, value in expected.items() if type(value) is kind]
            assert look.named(kind) == of_kind
        found = [id(value) for value in expected.values() if type(value) in (list, Thing)]
        assert sorted(map(id, names.of_kinds({list, Thing}.__contains__))) == sorted(found)


def test_arrays_are_new_once_and_for_all_who_ask_after_the_same_cell() -> None:
    namespace: dict[str, object] = {"a": jnp.ones(1), "b": jnp.zeros(1), "other": 1.0}
    names = UserNames(namespace)

    def new(info: object) -> dict[str, object]:
        return dict(names.new_arrays(info))

    first, second = object(), object()
    assert new(first) == new(first) == {"a": namespace["a"], "b": namespace["b"]}
    assert new(second) == {}
    # Under another name it is as new as another array; gone ones are not told, nor what is none.
    namespace |= {"c": namespace["a"], "b": jnp.ones(2), "other": 2.0}
    third = object()
    assert new(third) == {"b": namespace["b"], "c": namespace["c"]}
    del namespace["b"], namespace["c"]
    assert new(third) == {}
    namespace["b"] = jnp.ones(3)
    assert new(object()) == {"b": namespace["b"]}


def test_names_of_arrays_that_are_gone_are_forgotten() -> None:
    namespace: dict[str, object] = {}
    names = UserNames(namespace)
    kept = jnp.ones(1)
    for i in range(1_000):
        namespace["x"], namespace[f"y{i}"] = kept, kept
        names.new_arrays(object())
        del namespace[f"y{i}"]
    assert len(names._arrays) < 200
