"""A client that mypy --strict reads: public names have types."""

from typing import List, Tuple

import numpy as np
import numpy.typing as npt

import esscher as es


class Point:
    """A user's measure with types."""

    dim: int = 1

    def log_mgf(self, a: npt.NDArray[np.float64]) -> float:
        return float(a[0])

    def tilted_mean(self, a: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.ones(1)

    def tilted_cov(self, a: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.zeros((1, 1))

    def sample(self, stream: es.Stream, n: int) -> npt.NDArray[np.float64]:
        return np.ones((n, 1))


class Mean:
    """A user's task with types."""

    token_dim: int = 1

    def draw(self, stream: es.Stream) -> Tuple[es.Gaussian, List[float], float]:
        m = stream.normal(1)
        return es.Gaussian([[1.0]], m), [0.0], float(m[0])


def main() -> Tuple[float, es.Estimate]:
    head = es.Attention(U=[[1.0]])
    output: npt.NDArray[np.float64] = head(es.Gaussian([[1.0]]), [1.0])
    mixed = es.Mixture([1, 2], [es.Gaussian([[1.0]]), es.measure(Point())])
    error: es.Estimate = es.mean_square_error(mixed, head, np.ones(1), 10, replicates=4)
    length: float = es.inf
    flow = es.flow(es.LinearRegressionTask(2), length=length)
    at = es.Readout(np.zeros((1, 1)), np.zeros(1))
    assert es.flow(Mean(), at, length=5, draws=10, t_end=0.1).risk[0] > 0
    assert es.risk(Mean(), at, 5, draws=10).engine == "quadrature"
    task = es.DenoisingTask([[1.0], [-1.0]], gamma=0.5, xi=0.5)
    layer = es.Layer(U=np.eye(1), V=np.eye(1), kinds="linear")
    value, slope, _ = es.risk(task, layer, 5, gradient=True)
    assert isinstance(slope, es.Layer) and value.value > es.reference_risks(task, 5).bayes.value
    best: es.Optimum = es.optimum(task, [es.inf], restarts=1)
    assert best.rows[0].risk < value.value
    names: List[str] = [p.name for p in es.presets()]
    found = es.preset(names[0]).config()
    assert "task" in found
    return float(output[0]) + flow.risk[-1], error


if __name__ == "__main__":
    main()
