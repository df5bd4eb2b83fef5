"""The hashes behind `philox2x32`, `philox4x32` and `threefry4x32`, against their authors' answers.

That keys use them as JAX does is in the oracle (`cases/generators.txt`).
"""

from __future__ import annotations

import numpy as np
import pytest

from perspex import enable_x64, jit, vmap
from perspex.ops.counters import philox2x32, philox4x32, threefry4x32

HASHES = {"philox2x32": philox2x32, "philox4x32": philox4x32, "threefry4x32": threefry4x32}
# Random123, `kat_vectors`: key, counter, result.
KNOWN_ANSWERS = """
philox2x32   | 00000000 | 00000000 00000000 | ff1dae59 6cd10df2
philox2x32   | ffffffff | ffffffff ffffffff | 2c3f628b ab4fd7ad
philox2x32   | 13198a2e | 243f6a88 85a308d3 | dd7ce038 f62a4c12
philox4x32   | 00000000 00000000 | 00000000 00000000 00000000 00000000 | 6627e8d5 e169c58d bc57ac4c 9b00dbd8
philox4x32   | ffffffff ffffffff | ffffffff ffffffff ffffffff ffffffff | 408f276d 41c83b0e a20bc7c6 6d5451fd
philox4x32   | a4093822 299f31d0 | 243f6a88 85a308d3 13198a2e 03707344 | d16cfe09 94fdcceb 5001e420 24126ea1
threefry4x32 | 00000000 00000000 00000000 00000000 | 00000000 00000000 00000000 00000000 | 9c6ca96a e17eae66 fc10ecd4 5256a7d8
threefry4x32 | ffffffff ffffffff ffffffff ffffffff | ffffffff ffffffff ffffffff ffffffff | 2a881696 57012287 f6c7446e a16a6732
threefry4x32 | a4093822 299f31d0 082efa98 ec4e6c89 | 243f6a88 85a308d3 13198a2e 03707344 | 59cd1dbb b8879579 86b5d00c ac8b6d84
"""  # noqa: E501 - one answer a line


@pytest.mark.parametrize("line", KNOWN_ANSWERS.strip().splitlines())
def test_known_answers(line: str) -> None:
    name, *parts = [part.strip() for part in line.split("|")]
    key, counter, result = [[np.uint32(int(word, 16)) for word in part.split()] for part in parts]
    function = HASHES[name]
    for x64 in (False, True):
        with enable_x64(x64):
            assert [int(x) for x in function(*key, *counter)] == result
    words = np.array([0, counter[0]], np.uint32)
    found = jit(vmap(lambda x: function(*key, x, *counter[1:])))(words)
    assert [int(x[1]) for x in found] == result


def test_other_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="philox2x32 takes uint32 keys and counters, got i32"):
        philox2x32(np.int32(1), np.uint32(1), np.uint32(1))
