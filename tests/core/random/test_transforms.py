"""Random functions under the transforms: batches of keys, tangents, loops, programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from perspex import config, jit, lax, make_jaxpr, random
from perspex.ops.structural import to_front
from perspex.transforms.jvp import jvp
from perspex.transforms.vmap import batch

KEYS = random.split(random.key(3), 4)
P = np.array([0.1, 0.4, 0.2, 0.3])

DRAWS: dict[str, Callable[[Any], Any]] = {
    "key_data": random.key_data,
    "split": lambda k: random.split(k, 3),
    "fold_in": lambda k: random.fold_in(k, 3),
    "bits": lambda k: random.bits(k, (5,), "uint8"),
    "uniform": lambda k: random.uniform(k, (2, 3), minval=-1.3, maxval=2.1),
    "normal": lambda k: random.normal(k, (5,)),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 1.0, (5,)),
    "gumbel": lambda k: random.gumbel(k, (5,), mode="highest"),
    "randint": lambda k: random.randint(k, (5,), np.arange(5), 100),
    "bernoulli": lambda k: random.bernoulli(k, P),
    "categorical": lambda k: random.categorical(k, np.zeros((2, 5)), shape=(3, 2)),
    "categorical once": lambda k: random.categorical(
        k, np.zeros((2, 5)), shape=(3, 2), replace=False
    ),
    "permutation": lambda k: random.permutation(k, np.arange(12).reshape(4, 3)),
    "choice": lambda k: random.choice(k, 4, (6,), p=P),
}


def numbers(x: Any) -> np.ndarray:
    return np.asarray(random.key_data(x) if x.dtype == KEYS.dtype else x)


def mapped(f: Callable[..., Any], *args: Any) -> np.ndarray:
    """`f` of each element of arrays of one length, by the batch rules."""
    size = args[0].shape[0]
    (out,), (at,) = batch(lambda *xs: [f(*xs)], size, args, [0] * len(args))
    return numbers(to_front(out, at, size))


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("partitionable", [True, False])
def test_batch_of_keys_is_a_loop(name: str, partitionable: bool) -> None:
    draw = DRAWS[name]
    with config.threefry_partitionable(partitionable):
        want = np.stack([numbers(draw(KEYS[i])) for i in range(4)])
        # The vector and the scalar form of a loop may round differently.
        equal = functools.partial(np.testing.assert_allclose, rtol=2e-6 * (want.dtype.kind == "f"))
        equal(mapped(draw, KEYS), want)
        equal(mapped(draw, random.key_data(KEYS)), want)


def test_batch_of_seeds_and_numbers() -> None:
    np.testing.assert_array_equal(mapped(random.key, np.arange(3)), [[0, 0], [0, 1], [0, 2]])
    folded = mapped(random.fold_in, KEYS, np.arange(4))
    want = [numbers(random.fold_in(KEYS[i], i)) for i in range(4)]
    np.testing.assert_array_equal(folded, want)


def test_batch_of_parameters() -> None:
    key, low, high = random.key(0), np.arange(4.0), np.arange(4.0) + 2
    out = mapped(lambda a, b: random.uniform(key, (3,), minval=a, maxval=b), low, high)
    unit = np.asarray(random.uniform(key, (3,)))
    np.testing.assert_allclose(out, unit * 2 + low[:, None], rtol=1e-6)
    out = mapped(lambda p: random.bernoulli(key, p, (50,)), np.array([0.0, 0.5, 1.0]))
    np.testing.assert_array_equal(out.all(axis=1), [False, False, True])


def test_samples_vary_with_their_bounds() -> None:
    key = random.key(0)

    def draw(low: Any, high: Any) -> Any:
        return [random.uniform(key, (5,), minval=low, maxval=high)]

    one = np.float32(1)
    unit = np.asarray(random.uniform(key, (5,)))
    # x = low + u (high - low)
    for tangents, want in [((one, None), 1 - unit), ((None, one), unit)]:
        _, (tangent,) = jvp(draw, [np.float32(-2), np.float32(3)], tangents)
        np.testing.assert_allclose(tangent, want, rtol=1e-6)
    _, (tangent,) = jvp(lambda x: [random.normal(key, (5,)) * x], [one], [one])
    np.testing.assert_allclose(tangent, random.normal(key, (5,)), rtol=1e-6)


def test_a_key_is_carried_through_a_loop() -> None:
    def step(key: Any, _: Any) -> Any:
        key, use = random.split(key)
        return key, random.normal(use, (2,))

    start = random.key(1)
    last, drawn = lax.scan(step, start, None, length=3)
    want, key = [], start
    for _ in range(3):
        key, sample = step(key, None)
        want.append(np.asarray(sample))
    np.testing.assert_allclose(drawn, want, rtol=1e-6)
    np.testing.assert_array_equal(numbers(last), numbers(key))


def test_a_jitted_function_takes_keys_and_seeds() -> None:
    def draw(seed: Any) -> Any:
        return random.uniform(random.fold_in(random.key(seed), 3), (4,))

    np.testing.assert_array_equal(jit(draw)(7), draw(7))
    np.testing.assert_array_equal(jit(draw)(np.uint8(7)), draw(7))


def test_a_uniform_draw_is_five_equations() -> None:
    text = str(make_jaxpr(lambda k: random.uniform(k, (3,)))(random.key(0)))
    assert text == (
        "{ lambda ; a:key<fry>[]. let\n"
        "    b:u32[3] = random_bits[bit_width=32 shape=(3,)] a\n"
        "    c:u32[3] = shift_right_logical b 9:u32[]\n"
        "    d:u32[3] = or c 1065353216:u32[]\n"
        "    e:f32[3] = bitcast_convert_type[new_dtype=float32] d\n"
        "    f:f32[3] = sub e 1.0:f32[]\n"
        "  in (f,) }"
    )
