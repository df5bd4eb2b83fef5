"""The user's names of a notebook, against all names looked through each time."""

from __future__ import annotations

import random

import pytest

from perspex_magics.user_names import UserNames

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
    choices = [*"abcdefgh", "_private", "_i_mine", "_12x", "In2", "_x1"]
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
            assert look.named(kind, 2) == of_kind[-2:]
            assert look.of(kind) == [value for _, value in of_kind]
        others = [id(value) for value in expected.values() if type(value) not in (list, Thing)]
        assert sorted(map(id, look.besides({list, Thing}))) == sorted(others)
