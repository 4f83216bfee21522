"""Start of the S5 parameters: the normal part of the HiPPO-LegS matrix, diagonalised.

LegS represents the history of a signal by Legendre coefficients. Its matrix is A = S - P Pᵀ with a
normal S, which has orthogonal eigenvectors; S5 starts from S. Eigenvalues come in conjugate pairs.
A real signal needs only one of each pair, with twice the real part at the output.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64


class Diagonalised(NamedTuple):
    """S = V diag(rate) V⁻¹: eigenvalues with positive imaginary part, and their eigenvectors."""

    rate_re: Float64[np.ndarray, " half"]
    rate_im: Float64[np.ndarray, " half"]
    vectors_re: Float64[np.ndarray, "n half"]
    vectors_im: Float64[np.ndarray, "n half"]


def legs_normal(size: int) -> Float64[np.ndarray, "n n"]:
    """The normal part S = A + P Pᵀ of the LegS matrix: -1/2 on the diagonal, else antisymmetric."""
    n = np.arange(size)
    root = np.sqrt(2 * n + 1)
    A = -np.tril(np.outer(root, root), -1) - np.diag(n + 1.0)
    P = np.sqrt(n + 0.5)
    return A + np.outer(P, P)


def diagonalise(size: int) -> Diagonalised:
    """Eigenvalues and eigenvectors of `legs_normal`, by a Hermitian solver."""
    if size < 2 or size % 2:
        raise ValueError(f"the number of states is {size} and must be even: states come in pairs")
    S = legs_normal(size)
    skew = (S - S.T) / 2
    imaginary, vectors = np.linalg.eigh(-1j * skew)
    keep = imaginary > 0
    half = vectors[:, keep]
    real = np.full(size // 2, np.mean(np.diag(S)))
    return Diagonalised(
        rate_re=real,
        rate_im=imaginary[keep],
        vectors_re=np.real(half),
        vectors_im=np.imag(half),
    )
