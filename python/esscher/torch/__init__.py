"""The bridge to PyTorch: attention on prompts and measures, exact risks and D(L) inside a graph of autograd.

    import torch, esscher as es, esscher.torch as et

Everything has first and second derivatives (``gradcheck``, ``gradgradcheck``) and works in float64 inside; results
have the dtype of the arguments. Measures of ``esscher`` are constants of the graph; ``et.Gaussian``, ``et.Empirical``
and ``et.Mixture`` are measures of tensors, whose parameters have gradients too. ``et.record`` writes down the heads of a
model, and ``et.replace`` runs them as windows with a tail. Needs PyTorch 1.13 or later, on the CPU.
"""

from __future__ import annotations

from .attention import Attention, attention
from .calls import Call
from .finite import expected_output, layer_risk, mean_square_error, risk, universal
from .measures import Empirical, Gaussian, Mixture, tilted_mean
from .recording import Recording, record
from .replacing import replace
from .twin import Trainer, TwinTraining, draw_batch
from .weights import from_state_dict, readouts, to_state_dict, with_constant

__all__ = [
    "Attention", "Call", "Empirical", "Gaussian", "Mixture", "Recording", "Trainer", "TwinTraining", "attention", "draw_batch",
    "expected_output", "from_state_dict", "layer_risk", "mean_square_error", "readouts", "record", "replace", "risk",
    "tilted_mean", "to_state_dict", "universal", "with_constant",
]


def __dir__() -> list[str]:
    return sorted(__all__)
