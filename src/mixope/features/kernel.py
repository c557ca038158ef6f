"""Kernel features: Nyström and random Fourier maps of a Gaussian kernel on standardised states.

    k(s, t) = exp(−|z − y|² / 2 h²)
    Nyström    φ(s) = K_mm^{−½} k_m(s) on m landmarks:  φ(s)·φ(t) ≈ k(s, t), exact on the landmarks
    Fourier    φ(s) = √(2/m) cos(zΩ + u),  Ω ~ N(0, 1/h²),  u uniform (Rahimi & Recht 2007)

Neither is the default: with one bandwidth for all of the state space both did worse than bumps on Pendulum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixope.arrays import AnyArray, FloatArray
from mixope.features.protocol import namespace
from mixope.features.standard import FittedStandard, Standardise


def median_bandwidth(states: FloatArray, seed: int = 0) -> float:
    """The median distance between states of a sample."""
    from scipy.spatial.distance import pdist

    generator = np.random.default_rng([seed, 5])
    some = states[generator.choice(len(states), min(len(states), 1000), replace=False)]
    return float(np.median(pdist(some))) or 1.0


@dataclass(frozen=True)
class Nystrom:
    """``size`` landmarks drawn from the sample; ``bandwidth`` in standardised units (default: the median distance)."""

    size: int = 200
    bandwidth: float | None = None

    def fit(self, observations: AnyArray, seed: int = 0) -> FittedNystrom:
        """Landmarks and the inverse root of their Gram matrix."""
        scale = Standardise().fit(observations, seed)
        states = scale.transform(np.asarray(observations, dtype=np.float64))
        distinct = np.unique(states, axis=0)
        generator = np.random.default_rng([seed, 9])
        landmarks = distinct[generator.choice(len(distinct), min(self.size, len(distinct)), replace=False)]
        width = self.bandwidth or median_bandwidth(states, seed)
        values, vectors = np.linalg.eigh(gaussian_kernel(landmarks, landmarks, width))
        kept = values > 1e-10 * values[-1]
        return FittedNystrom(scale, landmarks, width, vectors[:, kept] / np.sqrt(values[kept]))


@dataclass(frozen=True)
class FittedNystrom:
    """Landmarks in standardised coordinates and the map that whitens them."""

    scale: FittedStandard
    landmarks: FloatArray
    bandwidth: float
    root: FloatArray

    @property
    def size(self) -> int:
        """As many features as the landmarks' Gram matrix has rank."""
        return int(self.root.shape[1])

    def transform(self, observations: AnyArray) -> FloatArray:
        """k(s, landmarks) K^{−½}."""
        xp = namespace(observations)
        z = self.scale.transform(observations)
        landmarks = xp.asarray(self.landmarks, dtype=z.dtype)
        result: FloatArray = gaussian_kernel(z, landmarks, self.bandwidth) @ xp.asarray(self.root, dtype=z.dtype)
        return result


@dataclass(frozen=True)
class RandomFourier:
    """``size`` random cosines and a constant."""

    size: int = 200
    bandwidth: float | None = None

    def fit(self, observations: AnyArray, seed: int = 0) -> FittedFourier:
        """Draw frequencies for the bandwidth."""
        scale = Standardise().fit(observations, seed)
        states = scale.transform(np.asarray(observations, dtype=np.float64))
        width = self.bandwidth or median_bandwidth(states, seed)
        generator = np.random.default_rng([seed, 13])
        frequencies = generator.normal(size=(states.shape[1], self.size)) / width
        return FittedFourier(scale, frequencies, generator.uniform(0, 2 * np.pi, self.size))


@dataclass(frozen=True)
class FittedFourier:
    """Frequencies and phases."""

    scale: FittedStandard
    frequencies: FloatArray
    phases: FloatArray

    @property
    def size(self) -> int:
        """The cosines and the constant."""
        return len(self.phases) + 1

    def transform(self, observations: AnyArray) -> FloatArray:
        """√(2/m) cos(zΩ + u), and one."""
        xp = namespace(observations)
        z = self.scale.transform(observations)
        angles = z @ xp.asarray(self.frequencies, dtype=z.dtype) + xp.asarray(self.phases, dtype=z.dtype)
        waves = float(np.sqrt(2.0 / len(self.phases))) * xp.cos(angles)
        result: FloatArray = xp.concatenate([xp.ones((len(z), 1), dtype=z.dtype), waves], axis=1)
        return result


def gaussian_kernel(left: FloatArray, right: FloatArray, bandwidth: float) -> FloatArray:
    """exp(−|x − y|²/2h²) for all pairs, in the array library of the arguments."""
    xp = namespace(left)
    squares = xp.sum(left**2, axis=1)[:, None] + xp.sum(right**2, axis=1) - 2.0 * left @ right.T
    result: FloatArray = xp.exp(-0.5 * xp.maximum(squares, 0.0) / bandwidth**2)
    return result
