"""Esscher: softmax attention as an operator on measures.

>>> import numpy as np, esscher as es
>>> T = es.Attention(U=np.eye(2))              # one head
>>> T(es.Gaussian(np.eye(2)), [1.0, 0.0])      # an infinite prompt
array([1., 0.])
>>> prompt = es.Gaussian(np.eye(2)).sample(0, 1000)
>>> T(prompt, [1.0, 0.0]).shape                # a finite one
(2,)
"""

from __future__ import annotations

from math import inf

from ._esscher import commit
from ._esscher import version as __version__
from .algebra import Weighted
from .attention import Attention, Gradients, MultiHead, MultiHeadGradients
from .charts import Chart
from .checks import Check, check
from .concentration import (
    Concentration,
    LengthAnswer,
    asymptotic_constant,
    concentration,
    predicted_exponent,
    shortest_length,
)
from .errors import (
    ArgumentError,
    CapabilityError,
    ConfigError,
    DimensionError,
    DomainError,
    Error,
    FileError,
    RuntimeFailure,
)
from .gradients import PromptGradients, ScoreGradients
from .risk_gradients import RiskFunction, RiskGradient, RiskSlopes, risk_function
from .heads import Diagnoses, WindowedHead, heads
from .icl import (
    Flow,
    LinearRegressionTask,
    Readout,
    UserTask,
    balanced_start,
    bayes_risk,
    block_optimum,
    flow,
    linear_risk,
    power_covariance,
)
from .layers import Layer, LayerGradient, Risks
from .optima import Optimum, optimum
from .references import ReferenceRisks, reference_risks
from .tasks import (
    ClassificationTask,
    DenoisingTask,
    LinearTask,
    PoolTask,
    SingleIndexTask,
)
from .composed import Affine, Mixture, Product, Sum
from .measures import (
    Ball,
    Categorical,
    Dirac,
    Elliptical,
    Empirical,
    Gaussian,
    Laplace,
    Measure,
    Rademacher,
    SingleIndex,
    Sphere,
    Stationary,
    Student,
    Uniform,
    measure,
)
from .models import Comparison, compare, risk
from .moments import OutputMoments, output_moments
from .presets import Claims, Preset, preset, presets
from .estimate import Estimate
from .finite import (
    ScoreFunctions,
    Universal,
    expected_output,
    mean_square_error,
    universal,
)
from .prompts import Attended, Group, Prompt, attend
from .random import Stream
from .progress import set_progress
from .risk_tables import RiskTable, risk_table
from .runs import Figure, Run, load
from .scaling import KeptFactors, Scaling, TokenLaw, kept_factors, scaling
from .suprema import SupErrors, sup_error
from .sweeps import Sweep, sweep
from .tables import Row, Rows
from .threads import set_thread_count, thread_count
from .train import LossPoint, Training, train
from .types import UserMeasure

__all__ = [
    "Affine",
    "ArgumentError",
    "asymptotic_constant",
    "attend",
    "Attended",
    "Attention",
    "balanced_start",
    "Ball",
    "bayes_risk",
    "block_optimum",
    "CapabilityError",
    "Categorical",
    "Chart",
    "Check",
    "check",
    "Claims",
    "commit",
    "compare",
    "Comparison",
    "Concentration",
    "concentration",
    "scaling",
    "Scaling",
    "kept_factors",
    "KeptFactors",
    "TokenLaw",
    "ConfigError",
    "Diagnoses",
    "DimensionError",
    "DomainError",
    "Empirical",
    "Error",
    "Estimate",
    "expected_output",
    "Figure",
    "FileError",
    "Flow",
    "flow",
    "Gaussian",
    "Gradients",
    "Group",
    "heads",
    "WindowedHead",
    "inf",
    "Laplace",
    "SingleIndex",
    "Stationary",
    "Student",
    "Dirac",
    "Elliptical",
    "LengthAnswer",
    "linear_risk",
    "LinearRegressionTask",
    "ClassificationTask",
    "DenoisingTask",
    "Layer",
    "LayerGradient",
    "LinearTask",
    "Optimum",
    "optimum",
    "PoolTask",
    "ReferenceRisks",
    "Risks",
    "reference_risks",
    "SingleIndexTask",
    "load",
    "LossPoint",
    "mean_square_error",
    "Measure",
    "measure",
    "Mixture",
    "MultiHead",
    "MultiHeadGradients",
    "output_moments",
    "OutputMoments",
    "power_covariance",
    "predicted_exponent",
    "Preset",
    "preset",
    "presets",
    "Prompt",
    "ScoreFunctions",
    "ScoreGradients",
    "Product",
    "PromptGradients",
    "Rademacher",
    "Readout",
    "risk",
    "risk_function",
    "risk_table",
    "RiskFunction",
    "RiskGradient",
    "RiskSlopes",
    "RiskTable",
    "Row",
    "Rows",
    "Run",
    "RuntimeFailure",
    "set_progress",
    "set_thread_count",
    "shortest_length",
    "Sphere",
    "Stream",
    "Sum",
    "sup_error",
    "SupErrors",
    "Sweep",
    "sweep",
    "thread_count",
    "train",
    "Training",
    "Uniform",
    "Universal",
    "universal",
    "UserMeasure",
    "UserTask",
    "Weighted",
    "__version__",
]


def __dir__() -> list[str]:
    return sorted(__all__)
