"""Rotations in three dimensions, as in `scipy.spatial.transform`.

A rotation is a unit quaternion `(x, y, z, w)`, as in SciPy. Both classes are named tuples of
arrays, hence pytrees. All formulas are those of Diebel, "Representing attitude" (2006), but for the
Euler angles: Bernardes and Viollet, "Quaternion to Euler angles conversion" (2022).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perspex import numpy as pnp
from perspex.arguments.types import Array, ArrayLike
from perspex.jitted.fused import fused

__all__ = ["Rotation", "Slerp"]

# Below this angle a series takes the place of sines, which would be divided by zero.
_SMALL = 1e-3


class Rotation(NamedTuple):
    """A rotation in three dimensions, or a stack of rotations.

    Make one with `from_euler`, `from_matrix`, `from_mrp`, `from_quat` or `from_rotvec`; `r * s`
    rotates by `s` and then by `r`. All methods are differentiable.

    Args:
      quat: unit quaternions `(x, y, z, w)`, of shape `(..., 4)`; not normalized here.

    >>> from perspex.scipy.spatial.transform import Rotation
    >>> import perspex.numpy as jnp
    >>> quarter = Rotation.from_euler("z", 90, degrees=True)
    >>> (quarter * quarter).apply(jnp.array([1.0, 2.0, 3.0])).round(4)
    Array([-1., -2.,  3.], dtype=float32)
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """The rotations of several stacks in one."""
        return cls(pnp.concatenate([rotation.quat for rotation in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """The rotation about coordinate axes, one after the other.

        Args:
          seq: one to three axes: of `"xyz"` for axes that stay (extrinsic), of `"XYZ"` for axes
            that turn along (intrinsic).
          angles: of shape `(..., len(seq))`; a number for one axis.
          degrees: whether the angles are in degrees instead of radians.

        Returns:
          A `Rotation`; a stack for angles with more than one axis.

        Raises:
          TypeError: if `angles` is not an array or a number.
          ValueError: for another `seq`, or another number of angles.
        """
        axes, intrinsic = _axes(seq, 1)
        given = pnp.atleast_1d(angles)
        if given.shape[-1] != len(axes):
            raise ValueError(
                f"Rotation.from_euler: {seq!r} takes angles of shape (..., {len(axes)}), got "
                f"{given.shape}"
            )
        return cls(_from_euler(given, degrees, axes=axes, intrinsic=intrinsic))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """The rotation with an orthogonal matrix of determinant 1, of shape `(..., 3, 3)`."""
        return cls(_from_matrix(pnp.asarray(matrix)))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """The rotation with modified Rodrigues parameters, of shape `(..., 3)`."""
        return cls(_from_mrp(pnp.asarray(mrp)))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """The rotation with a quaternion `(x, y, z, w)` of any length, of shape `(..., 4)`."""
        return cls(_normalized(pnp.asarray(quat)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """The rotation about the vector, by its length in radians, or in degrees: `(..., 3)`."""
        return cls(_from_rotvec(pnp.asarray(rotvec), degrees))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation that leaves everything as it is.

        Args:
          num: must be `None`; a stack is `Rotation(jnp.tile(...))`.
          dtype: that of the quaternion.

        Raises:
          NotImplementedError: for a `num`.
        """
        if num is not None:
            raise NotImplementedError(
                f"Rotation.identity makes one rotation, got num={num}; "
                "repeat it with Rotation(jnp.tile(Rotation.identity().quat, (num, 1)))"
            )
        return cls(pnp.array([0.0, 0.0, 0.0, 1.0], dtype=dtype))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """Not available, as in JAX. Normalize samples of `random.normal(key, (num, 4))`.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(
            "Rotation.random is not implemented; use "
            "Rotation.from_quat(jax.random.normal(key, (num, 4))), which is uniform"
        )

    def __getitem__(self, indexer: Any) -> Rotation:  # type: ignore[override]
        if self.single:
            raise TypeError("Single rotation is not subscriptable; `quat` has its four numbers.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len(); only a stack of rotations has.")
        return self.quat.shape[0]

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        return Rotation.from_quat(_composed(self.quat, other.quat))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """The rotated vectors.

        Args:
          vectors: of shape `(..., 3)`, which broadcasts with the stack of rotations.
          inverse: rotate the other way round.

        Returns:
          An array of the shape of `vectors` and the stack.
        """
        return _applied(self.quat, pnp.asarray(vectors), inverse)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """The angles of `from_euler`.

        In gimbal lock, where the middle angle makes the outer axes one, the third angle (the first
        of an intrinsic sequence) is zero.

        Args:
          seq: three axes, as `from_euler` takes them.
          degrees: whether to return degrees instead of radians.

        Returns:
          The angles, of shape `(..., 3)`, each in [-pi, pi).

        Raises:
          ValueError: for another `seq`.
        """
        axes, intrinsic = _axes(seq, 3)
        return _as_euler(self.quat, degrees, axes=axes, intrinsic=intrinsic)

    def as_matrix(self) -> Array:
        """The matrices, of shape `(..., 3, 3)`."""
        return _as_matrix(self.quat)

    def as_mrp(self) -> Array:
        """The modified Rodrigues parameters `tan(angle / 4) axis`, of shape `(..., 3)`."""
        return _as_mrp(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """The rotation vectors, as long as the angle in radians or degrees: `(..., 3)`."""
        return _as_rotvec(self.quat, degrees)

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions, of shape `(..., 4)`.

        Args:
          canonical: of the two quaternions of a rotation, the one whose last number that is not
            zero, in the order `w, x, y, z`, is positive.
          scalar_first: in the order `(w, x, y, z)`.
        """
        quat = _canonical(self.quat) if canonical else self.quat
        return pnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def inv(self) -> Rotation:
        """The rotation that undoes this one."""
        return Rotation(_inverse(self.quat))

    def magnitude(self) -> Array:
        """The angle of the rotation in radians, from 0 to pi; one for each of a stack."""
        return _magnitude(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation that is nearest to all of a stack, in the chordal metric.

        Args:
          weights: one for each rotation.

        Raises:
          ValueError: for weights of another shape.
        """
        count, dtype = len(self), self.quat.dtype
        w = pnp.ones(count, dtype) if weights is None else pnp.asarray(weights, dtype)
        if w.ndim != 1:
            raise ValueError(f"Expected `weights` to be 1 dimensional, got shape {w.shape}.")
        if w.shape[0] != count:
            raise ValueError(
                "Expected `weights` to have number of values equal to number of rotations, got "
                f"{w.shape[0]} values and {count} rotations."
            )
        _, vectors = pnp.linalg.eigh((w[:, None] * self.quat).T @ self.quat)
        return Rotation(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation, and not a stack."""
        return self.quat.ndim == 1


class Slerp(NamedTuple):
    """Rotations between rotations at given times, at constant angular velocity between each two.

    Make one with `Slerp.init(times, rotations)`, and call it with the times.

    >>> from perspex.scipy.spatial.transform import Rotation, Slerp
    >>> import perspex.numpy as jnp
    >>> turn = Slerp.init([0, 1], Rotation.from_euler("z", jnp.array([[0.0], [1.0]])))
    >>> turn(jnp.array([0.25, 0.5])).magnitude().round(4)
    Array([0.25, 0.5 ], dtype=float32)
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """The interpolation between rotations.

        Args:
          times: of shape `(n,)`, in increasing order, which is not checked.
          rotations: a stack of `n` rotations, at least two.

        Raises:
          TypeError: if `rotations` is not a `Rotation`.
          ValueError: for other shapes.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(
                f"`rotations` must be a `Rotation` instance, got {type(rotations).__name__}."
            )
        if rotations.single or len(rotations) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        at = pnp.asarray(times, dtype=rotations.quat.dtype)
        if at.ndim != 1:
            raise ValueError(
                "Expected times to be specified in a 1 dimensional array, got "
                f"{at.ndim} dimensions."
            )
        if at.shape[0] != len(rotations):
            raise ValueError(
                "Expected number of rotations to be equal to number of timestamps given, got "
                f"{len(rotations)} rotations and {at.shape[0]} timestamps."
            )
        first, second = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(at, pnp.diff(at), first, (first.inv() * second).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at `times`, a number or a vector.

        Raises:
          ValueError: for times of more axes.
        """
        at = pnp.asarray(times, dtype=self.times.dtype)
        if at.ndim > 1:
            raise ValueError(f"`times` must be at most 1-dimensional, got shape {at.shape}.")
        i = pnp.maximum(pnp.searchsorted(self.times, at) - 1, 0)
        part = (at - self.times[i]) / self.timedelta[i]
        return Rotation(self.rotations.quat[i]) * Rotation.from_rotvec(
            self.rotvecs[i] * part[..., None]
        )


def _axes(seq: str, least: int) -> tuple[tuple[int, ...], bool]:
    """The numbers of the axes in `seq`, and whether they turn along."""
    if not least <= len(seq) <= 3:
        wanted = "3 axes" if least == 3 else "a non-empty string of up to 3 axes"
        raise ValueError(f"Expected axis specification to be {wanted}, got {seq}")
    if not re.fullmatch("[XYZ]+|[xyz]+", seq):
        raise ValueError(
            f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}"
        )
    if any(a == b for a, b in zip(seq, seq[1:], strict=False)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return tuple(["xyz".index(axis) for axis in seq.lower()]), seq.isupper()


# ---- On arrays of quaternions, whose last axis is (x, y, z, w) -----------------------------------


def _parts(quat: Any) -> tuple[Any, Any, Any, Any]:
    return quat[..., 0], quat[..., 1], quat[..., 2], quat[..., 3]


def _length(x: Any) -> Any:
    return pnp.sqrt(pnp.sum(x * x, axis=-1))


@fused
def _normalized(quat: Any) -> Any:
    return quat / _length(quat)[..., None]


@fused
def _inverse(quat: Any) -> Any:
    return quat * pnp.array([-1, -1, -1, 1], quat.dtype)


@fused
def _magnitude(quat: Any) -> Any:
    return 2 * pnp.arctan2(_length(quat[..., :3]), pnp.abs(quat[..., 3]))


@fused
def _canonical(quat: Any) -> Any:
    flip, zeros = pnp.zeros(quat.shape[:-1], bool), pnp.ones(quat.shape[:-1], bool)
    for i in (3, 0, 1, 2):
        flip |= zeros & (quat[..., i] < 0)
        zeros &= quat[..., i] == 0
    return pnp.where(flip[..., None], -quat, quat)


@fused
def _composed(p: Any, q: Any) -> Any:
    """The Hamilton product."""
    p, q = pnp.broadcast_arrays(p, q)
    u, v = p[..., :3], q[..., :3]
    a, b = p[..., 3:], q[..., 3:]
    turned = a * v + b * u + pnp.cross(u, v)
    return pnp.concatenate([turned, a * b - pnp.sum(u * v, axis=-1, keepdims=True)], axis=-1)


@fused
def _as_matrix(quat: Any) -> Any:
    x, y, z, w = _parts(quat)
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return pnp.stack([pnp.stack(row, axis=-1) for row in rows], axis=-2)


@fused
def _applied(quat: Any, vectors: Any, inverse: Any) -> Any:
    matrix = _as_matrix(quat)
    back = pnp.asarray(inverse)[..., None, None]
    matrix = pnp.where(back, pnp.swapaxes(matrix, -1, -2), matrix)
    return pnp.matvec(matrix, vectors)


@fused
def _from_matrix(matrix: Any) -> Any:
    # Each of these is the quaternion times four times one of its numbers; the largest is best.
    m = [[matrix[..., i, j] for j in range(3)] for i in range(3)]
    trace = m[0][0] + m[1][1] + m[2][2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        found = dict([(i, 1 - trace + 2 * m[i][i]), (j, m[j][i] + m[i][j])])
        found |= {k: m[k][i] + m[i][k], 3: m[k][j] - m[j][k]}
        candidates.append(pnp.stack([found[n] for n in range(4)], axis=-1))
    turned = [m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1], 1 + trace]
    candidates.append(pnp.stack(turned, axis=-1))
    largest = pnp.argmax(pnp.stack([m[0][0], m[1][1], m[2][2], trace], axis=-1), axis=-1)
    return _normalized(pnp.choose(largest[..., None], candidates, mode="clip"))


@fused
def _as_mrp(quat: Any) -> Any:
    w = quat[..., 3:]
    sign = pnp.where(w < 0, -1, 1).astype(quat.dtype)
    return sign * quat[..., :3] / (1 + sign * w)


@fused
def _from_mrp(mrp: Any) -> Any:
    square = pnp.sum(mrp * mrp, axis=-1, keepdims=True)
    return pnp.concatenate([2 * mrp, 1 - square], axis=-1) / (1 + square)


@fused
def _as_rotvec(quat: Any, degrees: Any) -> Any:
    quat = pnp.where(quat[..., 3:] < 0, -quat, quat)  # the angle is at most pi
    angle = 2 * pnp.arctan2(_length(quat[..., :3]), quat[..., 3])
    square = angle * angle
    series = 2 + square / 12 + 7 * square * square / 2880
    scale = pnp.where(angle <= _SMALL, series, angle / pnp.sin(angle / 2))
    return (_in_unit(scale, degrees))[..., None] * quat[..., :3]


@fused
def _from_rotvec(rotvec: Any, degrees: Any) -> Any:
    rotvec = _in_radians(rotvec, degrees)
    angle = _length(rotvec)
    square = angle * angle
    series = 0.5 - square / 48 + square * square / 3840
    scale = pnp.where(angle <= _SMALL, series, pnp.sin(angle / 2) / angle)
    return pnp.concatenate([scale[..., None] * rotvec, pnp.cos(angle / 2)[..., None]], axis=-1)


@fused(static=("axes", "intrinsic"))
def _from_euler(angles: Any, degrees: Any, *, axes: tuple[int, ...], intrinsic: bool) -> Any:
    half = _in_radians(angles, degrees) / 2
    result: Any = None
    for i, axis in enumerate(axes):
        zero = pnp.zeros(half.shape[:-1], half.dtype)
        numbers = [zero, zero, zero, pnp.cos(half[..., i])]
        numbers[axis] = pnp.sin(half[..., i])
        quat = pnp.stack(numbers, axis=-1)
        if result is not None:
            quat = _composed(result, quat) if intrinsic else _composed(quat, result)
        result = quat
    return result


@fused(static=("axes", "intrinsic"))
def _as_euler(quat: Any, degrees: Any, *, axes: tuple[int, ...], intrinsic: bool) -> Any:
    # An intrinsic sequence is the extrinsic one backwards.
    i, j, k = axes[::-1] if intrinsic else axes
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2  # that of the permutation
    x, y, z, w = quat[..., i], quat[..., j], quat[..., k] * sign, quat[..., 3]
    if symmetric:
        a, b, c, d = w, x, y, z
    else:
        a, b, c, d = w - y, x + z, y + w, z - x
    middle = 2 * pnp.arctan2(pnp.hypot(c, d), pnp.hypot(a, b))
    half_sum, half_difference = pnp.arctan2(b, a), pnp.arctan2(d, c)
    eps = 1e-7
    locked_at_0 = pnp.abs(middle) <= eps
    locked = locked_at_0 | (pnp.abs(middle - np.pi) <= eps)
    alone = pnp.where(locked_at_0, 2 * half_sum, (2 if intrinsic else -2) * half_difference)
    # `alone` is the user's first angle; the other outer one is zero then.
    first, third = half_sum - half_difference, half_sum + half_difference
    if not symmetric:
        middle = middle - np.pi / 2
    if intrinsic:
        first = pnp.where(locked, 0, first)
        third = pnp.where(locked, alone, third)
    else:
        first = pnp.where(locked, alone, first)
        third = pnp.where(locked, 0, third)
    if not symmetric:
        third = third * sign
    found = [third, middle, first] if intrinsic else [first, middle, third]
    angles = (pnp.stack(found, axis=-1) + np.pi) % (2 * np.pi) - np.pi
    return _in_unit(angles, degrees)


def _in_radians(x: Any, degrees: Any) -> Any:
    return pnp.where(degrees, pnp.deg2rad(x), x)


def _in_unit(x: Any, degrees: Any) -> Any:
    return pnp.where(degrees, pnp.rad2deg(x), x)
