"""Attention: averages of values, weighted by how well keys fit queries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perspex import dtypes
from perspex import numpy as pnp
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused
from perspex.nn.normalization import logsumexp, softmax

__all__ = ["dot_product_attention"]


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]:
    """Scaled dot-product attention, of several heads.

    For each query `q` the mean of the values with the weights `softmax(scale q k + bias)`, which
    are computed in float32 (or wider). Groups of heads of queries share a head of keys and values
    where there are fewer of these.

    Args:
      query: an array of shape `(batch, t, n, h)`, or without batch: `t` queries, `n` heads.
      key, value: arrays of shape `(batch, s, k, h)`; `k` divides `n`. All three have one dtype.
      bias: an array that broadcasts to `(batch, n, t, s)`, added to the logits.
      mask: booleans that broadcast to `(batch, n, t, s)`: what a query may attend to.
      scale: `1 / sqrt(h)` if not given.
      is_causal: a query attends to keys at its own place and before only.
      query_seq_lengths: int32 of shape `(batch,)`: results beyond are zeros.
      key_value_seq_lengths: int32 of shape `(batch,)`: keys beyond are not attended to.
      local_window_size: how many places before and after its own a query attends to, one number or
        two.
      implementation: `None` or `"xla"`; `"cudnn"` is not available.
      return_residual: return also the logarithm of the sum of the weights' exponentials.

    Returns:
      An array of the shape and dtype of `query`; with `return_residual` also one of shape
      `(batch, t, n)`. A query that may attend to nothing gets the mean of all values.

    Raises:
      ValueError: if shapes or dtypes do not fit, or the implementation is unknown.
      RuntimeError: if the implementation is `"cudnn"`.

    References:
      A. Vaswani et al., "Attention is all you need", arXiv:1706.03762. J. Ainslie et al., "GQA",
      arXiv:2305.13245, for shared heads.

    >>> q = pnp.ones((1, 2, 1, 4))
    >>> dot_product_attention(q, q, pnp.array([[[[1.0]], [[3.0]]]]) * q, is_causal=True)[0, :, 0, 0]
    Array([1., 2.], dtype=float32)
    """
    if implementation == "cudnn":
        raise RuntimeError(
            "dot_product_attention: cuDNN is not detected; leave implementation out, or say 'xla'"
        )
    if implementation not in (None, "xla"):
        raise ValueError(
            f"dot_product_attention: Unsupported implementation option: {implementation}; it is "
            "None or 'xla'"
        )
    window = local_window_size
    if isinstance(window, int):
        window = (window, window)
    return _attention(
        pnp.asarray(query),
        pnp.asarray(key),
        pnp.asarray(value),
        bias,
        mask,
        scale,
        query_seq_lengths,
        key_value_seq_lengths,
        causal=bool(is_causal),
        window=window if window is None else (int(window[0]), int(window[1])),
        residual=bool(return_residual),
    )


@fused(static=("causal", "window", "residual"))
def _attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    mask: Any,
    scale: Any,
    query_lengths: Any,
    key_lengths: Any,
    *,
    causal: bool,
    window: tuple[int, int] | None,
    residual: bool,
) -> Any:
    shape = query.shape
    if query.ndim == 3:
        query = query[None]
    key, value = [x[None] if x.ndim == 3 else x for x in (key, value)]
    _check(query, key, value)
    batch, t, _, width = query.shape
    s = key.shape[1]
    bias, mask = _four_axes("bias", bias), _four_axes("mask", mask)
    query_lengths = _lengths("query_seq_lengths", query_lengths, batch)
    key_lengths = _lengths("key_value_seq_lengths", key_lengths, batch)
    if mask is not None and mask.dtype != bool:
        raise ValueError(
            f"dot_product_attention: mask dtype should be bool, but got {mask.dtype.name}; compare "
            "it with 0"
        )
    wide = dtypes.promote_types(query.dtype, np.dtype("float32"))
    logits = _products(query, key, wide)
    logits = logits * pnp.asarray(1 / math.sqrt(width) if scale is None else scale, wide)
    if bias is not None:
        logits = (logits + bias).astype(wide)
    allowed = _allowed(mask, key_lengths, t, s, causal, window)
    if allowed is not None:
        # Finite, so that a query with nothing to attend to does not become NaN.
        logits = pnp.where(allowed, logits, np.asarray(-0.7 * dtypes.finfo(wide).max, wide))
    weights = softmax(logits, axis=-1).astype(key.dtype)
    out = _means(weights, value)
    if query_lengths is not None:
        inside = pnp.arange(t)[None, :] < query_lengths[:, None]
        out = pnp.where(inside[:, :, None, None], out, pnp.zeros_like(out))
    out = out.reshape(shape)
    if not residual:
        return out
    total = pnp.moveaxis(logsumexp(logits, axis=-1), 1, 2).astype(key.dtype)
    return out, total.reshape(shape[:-1])


def _products(query: Any, key: Any, dtype: Any) -> Any:
    """The product of each query with each key, for each head."""
    (batch, t, heads, width), (_, s, shared, _) = query.shape, key.shape
    if heads == shared:
        return pnp.einsum("btnh,bsnh->bnts", query, key, preferred_element_type=dtype)
    # The queries of one group of heads share their keys.
    query = query.reshape(batch, t, shared, heads // shared, width)
    out = pnp.einsum("btkgh,bskh->bkgts", query, key, preferred_element_type=dtype)
    return out.reshape(batch, heads, t, s)


def _means(weights: Any, value: Any) -> Any:
    """The mean of the values for each head and query."""
    (batch, heads, t, s), (_, _, shared, width) = weights.shape, value.shape
    if heads == shared:
        return pnp.einsum("bnts,bsnh->btnh", weights, value)
    weights = weights.reshape(batch, shared, heads // shared, t, s)
    return pnp.einsum("bkgts,bskh->btkgh", weights, value).reshape(batch, t, heads, width)


def _allowed(
    mask: Any, key_lengths: Any, t: int, s: int, causal: bool, window: tuple[int, int] | None
) -> Any:
    """Which keys each query may attend to; `None` for all of them."""
    rules = [] if mask is None else [mask]
    queries, keys = pnp.arange(t)[:, None], pnp.arange(s)[None, :]
    if causal:
        rules.append((keys <= queries)[None, None])
    if window is not None:
        before, after = window
        near = (keys >= queries - before) & (keys <= queries + after)
        rules.append(near[None, None])
    if key_lengths is not None:
        rules.append(keys[None, None] < key_lengths[:, None, None, None])
    allowed = None
    for rule in rules:
        allowed = rule if allowed is None else allowed & rule
    return allowed


# ---- Checks -------------------------------------------------------------------------------------


def _check(query: Any, key: Any, value: Any) -> None:
    name = "dot_product_attention"
    for what, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim != 4:
            raise ValueError(
                f"{name}: {what} must have axes (batch, length, heads, width), or none for the "
                f"batch; got shape {x.shape}"
            )
    if key.shape != value.shape:
        raise ValueError(
            f"{name}: value shape should be {list(key.shape)}: but got {value.shape}, as key and "
            "value must have equal shapes"
        )
    if query.shape[0] != key.shape[0] or query.shape[3] != key.shape[3]:
        raise ValueError(
            f"{name}: query and key must have the same batch and width, got shapes {query.shape} "
            f"and {key.shape}"
        )
    if key.shape[2] == 0 or query.shape[2] % key.shape[2]:
        raise ValueError(
            f"{name}: The number of query heads must be a multiple of key/value heads, but got "
            f"{query.shape[2]} vs {key.shape[2]}"
        )
    for what, x in (("query", query), ("value", value)):
        if x.dtype != key.dtype:
            raise ValueError(
                f"{name}: {what} dtype should be {key.dtype.name}, but got {x.dtype.name}; convert "
                "it"
            )


def _four_axes(what: str, x: Any) -> Any:
    if x is None:
        return None
    x = pnp.asarray(x)
    if x.ndim > 4:
        raise ValueError(
            f"dot_product_attention: {what} must broadcast to (batch, heads, queries, keys), got "
            f"shape {x.shape}"
        )
    return x.reshape((1,) * (4 - x.ndim) + x.shape)


def _lengths(what: str, x: Any, batch: int) -> Any:
    if x is None:
        return None
    x = pnp.asarray(x)
    if x.shape != (batch,):
        raise ValueError(
            f"dot_product_attention: {what} shape should be [{batch}]: but got {x.shape}"
        )
    if x.dtype != np.int32:
        raise ValueError(
            f"dot_product_attention: {what} dtype should be int32, but got {x.dtype.name}"
        )
    return x
