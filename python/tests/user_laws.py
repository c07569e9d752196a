"""A measure written in Python that several tests share; it stands in a module so that it can be pickled."""

import numpy as np


class Coin:
    """Rademacher coordinates."""

    def __init__(self, dim):
        self.dim = dim

    def log_mgf(self, a):
        return np.log(np.cosh(a)).sum()

    def tilted_mean(self, a):
        return np.tanh(a)

    def tilted_cov(self, a):
        return np.diag(1 / np.cosh(a) ** 2)

    def sample(self, stream, n):
        return np.sign(stream.normal(n * self.dim)).reshape(n, self.dim)

    def __repr__(self):
        return f"Coin({self.dim})"
