"""Errors, shapes and dtypes that differ as they should, each with its reason."""

from __future__ import annotations

from fuzz.meant_row import Meant

INNER = "an inner error of jax"
TWO = "a program with two errors; jax raises the other one"
# The shape of ours, and more sizes behind it.
SIZES = r"[^\[]*\[(?:'aval', '\w+', \[)?"
LONGER = rf"got {SIZES}(\d[\d, ]*)\][\s\S]*want {SIZES}\1, \d"
# The first size of ours twice.
TWICE = rf"got {SIZES}(\d+)([\d, ]*)\][\s\S]*want {SIZES}\1, \1\2\]"
EMPTY = rf"got {SIZES}(?:\d+, )*0\][\s\S]*want {SIZES}(?:\d+, )*1\]"
SPECIAL = r"jax\.scipy\.special\."
CLOSES = r"got Unexp[^\n]*closes over a value[\s\S]*want "
TYPES = [
    Meant("jax raises", "", "", "Perspex accepts more"),
    Meant("we raise", r"has no derivative with respect to", "", "a derivative that jax leaves out"),
    Meant("error type", r"has no derivative with respect to", "", "one that jax misses later"),
    Meant("text", r"perspex\.|Tracer", "", "names of ours in texts"),
    Meant("structure", r"got python (int|float|bool)", r"custom_vmap\(", "right: a Python number"),
    Meant("structure", r"want numpy array", "", "right: an array of the library, not of NumPy"),
    Meant("we raise", r"with more axes than the array", "where=", "a mask that NumPy refuses, too"),
    Meant(
        "we raise", r"reduce\w*: axes .* are out of range", "", "jax leaves that to the compiler"
    ),
    Meant("we raise", r"gather: slice_sizes .* do not", "", "jax misses it where nothing is read"),
    Meant("we raise", r"jacfwd requires .* got bool", "", "jax refuses it where numbers are known"),
    Meant("error type", r"want CustomVJPException", "", "a private type, for values closed over"),
    Meant(
        "error type",
        CLOSES + r"(TypeError: No const|ValueError: (Lineariz|Reverse-mode))",
        "",
        INNER,
    ),
    Meant("error type", r"reduce: axes .* out of range[\s\S]*want IndexError", "", INNER),
    Meant("error type", r"jacrev requires[\s\S]*want ValueError: Linearization", "", INNER),
    Meant(
        "error type",
        r"jacfwd requires .* got key[\s\S]*want (NotImplementedError|ValueError: at vmap)",
        "",
        INNER,
    ),
    Meant(
        "error type",
        r"jacfwd requires .* got bool[\s\S]*want ValueError: (at vmap|Linearization|Reverse-mode)",
        "",
        INNER,
    ),
    Meant(
        "error type",
        r"got TypePromotionError[\s\S]*want ConcretizationTypeError",
        r"jnp\.(union|intersect|setdiff|setxor)1d\(",
        TWO,
    ),
    Meant(
        "error type",
        r"reduce_\w+: axes [\s\S]*want TypeError: logical",
        "",
        TWO,
    ),
    Meant(
        "we raise",
        r"Unknown gather mode",
        r"\.at\[(np\.array\((\[?(True|False)\]?)+, bool|(None|\.\.\.)\]|-?\d*:)",
        "a mode that jax does not look at where it gathers nothing",
    ),
    Meant(
        "error type",
        r"want NotImpl\w+: Diff\w+ rule for '(zeta|igamma_grad_a|pmax|pmin|geqrf)'",
        "",
        "a derivative that jax lacks",
    ),
    Meant(
        "error type",
        r"forward-mode autodiff[\s\S]*want ValueError: Linearization",
        "",
        INNER,
    ),
    Meant(
        "we raise",
        r"(has a rule of its own [^\n]* differentiate|unexpected tracer|has returned)"
        r"[\s\S]*want [^\n]*(aval|array)",
        r"jax\.custom_[jv]+p\(",
        "jax misses it where nothing is computed",
    ),
    Meant(
        "we raise",
        r"Reverse-mode differentiation does not work[\s\S]*want [^\n]*aval \w+ \[(\d+, )*0[\],]",
        "",
        "jax misses it where nothing is computed",
    ),
    Meant("we raise", r"does not support complex", "stats", "a density of a complex number"),
    Meant("we raise", r"repeats must be integers", r"repeat\(", "a dtype that NumPy refuses, too"),
    Meant("we raise", r"repeats must not be neg", r"repeat\(", "numbers that NumPy refuses, too"),
    Meant("error type", r"want NotImplementedError: scatter_(apply JVP|mul grad)", "", INNER),
    Meant("error type", r"want ValueError: Invalid integer data type 'V'", "", INNER),
    Meant("error type", r"want ValueError: Operands must have the same tree", "", INNER),
    Meant("error type", r"want AssertionError", "", "an assertion of jax"),
    Meant("error type", r"repeats must not be neg[\s\S]*want OverflowError", "", INNER),
    Meant(
        "error type",
        r"got ValueError: Reverse-mode[\s\S]*want TypeError: can't apply forward",
        "",
        TWO,
    ),
    Meant("error type", r"custom_jvp.* not implemented|'custom_lin' not", "", INNER),
    Meant("error type", r"IndivisibleError", "", "a private type, which is a ValueError"),
    Meant(
        "shape", r"want .*\[(\d+, )*0[\],]", r"jnp\.take\(", "right: no indices give their shape"
    ),
    Meant(
        "shape", LONGER, r"lax\.all_to_all\(", "right: jax adds an axis if only the name is mapped"
    ),
    Meant("shape", EMPTY, r"fft\.i?[rh]fft", "right: jax cannot compile that of an empty axis"),
    # A primal that is in a batch, and whose tangent is not.
    *[
        Meant(
            "shape",
            said,
            r"jax\.custom_batching\.custom_vmap\(",
            "right: jax returns an axis too many in forward mode",
            "without_rule(",
        )
        for said in (TWICE, rf"got {SIZES}(\d[\d, ]*)\][\s\S]*want {SIZES}2, \1\]")
    ],
    Meant(
        "error type", r"reduce_(and|or|xor): axes .* out of range[\s\S]*want IndexError", "", INNER
    ),
    Meant("dtype", "", r"linalg\.pascal\(", "right: float64 holds them", "linalg.hilbert("),
    Meant("we raise", r"eigh_tridiagonal takes vectors", "", "an empty matrix, which jax takes"),
    Meant(
        "dtype",
        r"float64",
        SPECIAL + r"owens_t\(",
        "right: the dtype of its arguments, as that of other functions",
        "jnp.hypot(",
    ),
    Meant(
        "dtype",
        r"complex128",
        SPECIAL + r"sph_harm_y\((.*), n_max=3\)",
        "right: the dtype of the angles, as that of other functions",
        r"(lambda n, m, x, y: jnp.exp(x + y + 0j))(\1)",
    ),
    Meant(
        "weak type",
        "",
        r"lax\.p(sum|min|max|mean)\(",
        "jax's depends on whether it compiles",
        "(lambda x, *rest: x)(",
    ),
    Meant(
        "error type",
        r"got TypeError: p\w+ does not accept[\s\S]*want ValueError: shard_map applied",
        "",
        TWO,
    ),
    Meant(
        "error type",
        r"got ValueError: i?dctn?: Shape should be positive[\s\S]*want TypeError",
        "",
        "SciPy's error for a transform of nothing",
    ),
    Meant(
        "error type",
        r"got TypeError: jac\w+ requires[\s\S]*want NotImplementedError: \w+ rule for",
        "",
        TWO,
    ),
    Meant(
        "shape",
        rf"got {SIZES}(\d[\d, ]*)\][\s\S]*want {SIZES}2, \1\]",
        SPECIAL + r"poch\(",
        "right: jax returns an axis too many in forward mode",
        "jnp.add(",
    ),
    Meant(
        "error type",
        CLOSES + "TypePromotionError",
        "",
        TWO,
    ),
    Meant(
        "error type",
        r"want TypeError: Slice size at index \d in gather op",
        r"num_segments=0",
        TWO,
    ),
    Meant("error type", r"gather: slice_sizes[\s\S]*want ValueError: Linearization", "", INNER),
    Meant("error type", r"approx_\w+_k: operand[\s\S]*want IndexError", "", INNER),
    Meant("error type", r"cumlogsumexp does not accept[\s\S]*want OverflowError", "", INNER),
    Meant("error type", r"scatter_apply: func must give[\s\S]*want ValueError: Cannot", "", INNER),
    Meant("error type", r"scatter_apply: func must give[\s\S]*want ValueError: indices", "", TWO),
    Meant("error type", r"cannot read bool as [\s\S]*want ValueError: Attempting", "", TWO),
    Meant(
        "error type",
        r"got TypePromotionError[\s\S]*want TypeError: "
        r"(complex does not accept|x\.dtype=float8|logistic does not accept|Indexer must have)",
        "",
        TWO,
    ),
    Meant("error type", r"int4 never promote[\s\S]*want TypeError: primal and t", "expm_fr", TWO),
    Meant("error type", r"svd does not[\s\S]*want ValueError: data type", r"polyfit\(", TWO),
    Meant("error type", r"lt does not accept[\s\S]*want ValueError: Clip", r"jnp\.put\(", TWO),
    Meant(
        "error type",
        r"indices must be integers, got bool[\s\S]*want NonConcreteBoolean",
        r"put_along_axis\(",
        "NumPy's error for places that are a mask",
    ),
    Meant("we raise", r"segment_ids must be of integers, got bool", "", "a mask as numbers"),
    Meant(
        "we raise",
        r"custom_linear_solve: the solution: operand",
        "",
        "a solution of another dtype than jax promises for it",
    ),
    Meant("we raise", r"owens_t does not accept dtype complex", "", "a mass of complex numbers"),
    Meant(
        "we raise",
        r"random_gamma_grad requires arguments to have equal dtypes",
        "",
        "jax looks at one dtype of two",
    ),
    Meant(
        "we raise",
        r"int4 never promote",
        r"\.apply\(jnp\.\w+\)",
        "jax misses it where nothing is selected",
    ),
    Meant(
        "weak type",
        "bool",
        r"jnp\.logical_\w+\.outer\(",
        "booleans promote alike, whether weakly typed or not",
        "jnp.add.outer(",
    ),
    *[
        Meant(
            kind,
            "",
            r"lax\.linalg\.eigh\(",
            "right: jax adds booleans as bits",
            "lax.linalg.eigh(1.0 * ",
        )
        for kind in ("dtype", "weak type", "value")
    ],
]
