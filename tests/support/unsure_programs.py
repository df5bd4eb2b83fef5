"""Programs that fail while they are traced, for which no lines are certain to be right."""

from __future__ import annotations

UNSURE = {
    "a function that calls itself": (
        """
        def f(x):
            return 1 if x < 1 else x * f(x - 1)
        f = jit(f)
        """,
        "f(np.float32(3.0))",
    ),
    "a test that guards another": (
        """
        limit = 3.0
        @jit
        def f(x):
            if limit is None or x < limit:
                return x
            return 0
        """,
        "f(np.float32(1.0))",
    ),
    "a branch that does something else": (
        """
        seen = []
        @jit
        def f(x):
            if x > 0:
                seen.append(1)
            return x
        """,
        "f(np.float32(1))",
    ),
    "a branch without a value for the other": (
        """
        @jit
        def f(x):
            if x > 0:
                y = x
            return x
        """,
        "f(np.float32(1))",
    ),
    "results that are no arrays": (
        """
        @jit
        def f(x):
            name = "plus" if x > 0 else "minus"
            return x
        """,
        "f(np.float32(1))",
    ),
    "a loop with a way out": (
        """
        @jit
        def f(x):
            while x > 0:
                x = x - 1
                if x == 3:
                    break
            return x
        """,
        "f(np.float32(1))",
    ),
    "a loop whose value changes its shape": (
        """
        @jit
        def f(x):
            y = x
            while y.sum() < 10:
                y = jnp.concatenate([y, y])
            return y
        """,
        "f(np.float32([1]))",
    ),
    "a loop whose integer array becomes floating": (
        """
        @jit
        def f(x):
            while x > 1:
                x = x / 2
            return x
        """,
        "f(np.int32(8))",
    ),
    "a loop with a value that only the loop gives": (
        """
        @jit
        def f(x):
            while x > 1:
                half = x / 2
                x = half
            return half
        """,
        "f(np.float32(8))",
    ),
    "or for a default": (
        """
        @jit
        def f(x):
            return x or 1.0
        """,
        "f(np.float32(8))",
    ),
    "an f-string in an assertion": (
        """
        @jit
        def f(x):
            assert x > 0, f"got {x}"
            return x
        """,
        "f(np.float32(8))",
    ),
    "a loop through which derivatives are taken in reverse": (
        """
        @jit
        @grad
        def f(x):
            while x > 1:
                x = x / 2
            return x
        """,
        "f(np.float32(8))",
    ),
    "functions of an array with axes": (
        """
        def double(x):
            return 2 * x
        def halve(x):
            return x / 2
        @jit
        def f(x):
            return double(x) if x > 0 else halve(x)
        """,
        "f(np.float32([8]))",
    ),
    "in a set": (
        """
        @jit
        def f(x):
            return x in list({1, 2})
        """,
        "f(np.float32(8))",
    ),
    "objects of which one is no array": (
        """
        class Model:
            def __init__(self):
                self.name = "model"
        model = Model()
        @jit
        def f(x):
            return 0 * len(model.name if x > 0 else "none") + x
        """,
        "f(np.float32(8))",
    ),
    "a name of the function around": (
        """
        def outer():
            k = 2.0
            @jit
            def f(x):
                nonlocal k
                if x > 0:
                    k = x
                return k
            return f(np.float32(1))
        """,
        "outer()",
    ),
}
