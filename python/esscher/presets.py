"""Published settings, runnable by name: the files of experiments/, built into the package."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Union

from . import _esscher
from .concentration import Concentration, concentration_of
from .icl import Flow, flow_of
from .keywords import helpful
from .layers import Risks
from .outlets import Out, outlet
from .progress import Progress
from .models import Comparison, comparison_of
from .random import as_seed
from .results import Curve, Curves
from .results import Result as Base
from .scaling import TokenLaw
from .tables import Rows
from .train import Training, training_of

Result = Union[Flow, Comparison, Training, Risks, Concentration, TokenLaw]


@dataclass(frozen=True, eq=False)
class Claims(Base):
    """Claims of the source of a preset: what was found, what was expected, and "holds", "fails" or "no number".

    >>> import esscher as es
    >>> found = es.preset("zfb-shifts").check()
    >>> found.ok, found.rows[1].relation, found.rows[1].expected
    (True, '=', 4.0)
    """

    name: str
    rows: Rows

    @property
    def ok(self) -> bool:
        """Whether no claim fails."""
        return all(row["verdict"] != "fails" for row in self.rows)

    def __bool__(self) -> bool:
        return self.ok

    def _table(self) -> Rows:
        return self.rows

    def _picture(self) -> Curves:
        """Claims with a number, each as found / expected, by how it must stand to 1."""
        parts: Dict[str, List[Any]] = {}
        for i, row in enumerate(self.rows, 1):
            if row.verdict != "no number" and row.expected:
                parts.setdefault(f"must be {row.relation} 1", []).append((i, row.found / row.expected))
        curves = [Curve(label, *zip(*points)) for label, points in parts.items()]
        one = Curve("expected", range(1, len(self.rows) + 1), [1.0] * len(self.rows))
        title, x = f"claims of {self.name}", "number of the claim"
        return Curves(title, x, "found / expected", [*curves, one], "relation", log_y=True, marks=True)

    def _sentences(self) -> Rows:
        return self.rows

    def __repr__(self) -> str:
        holds, fails, none = (sum(row["verdict"] == word for row in self.rows) for word in ("holds", "fails", "no number"))
        return f"Claims({self.name}: {holds} hold, {fails} fail, {none} without a number)"


@dataclass(frozen=True)
class Preset:
    """A published setting: where it comes from, what a run shows, and its configuration as TOML.

    ``verb`` is the command it is meant for, e.g. "icl flow"; ``esscher icl flow --preset NAME`` gives
    the same numbers as ``run()``.

    >>> import esscher as es
    >>> p = es.preset("zfb-shifts")
    >>> p.verb, p.config()["task"]["dim"]
    ('icl flow', 5)
    """

    name: str
    verb: str
    title: str
    provenance: str
    expected: str
    toml: str

    @helpful
    def config(self, changes: Mapping[str, Any] = {}) -> Dict[str, Any]:
        """Its tables as nested dictionaries, with changes {"table.key": value} applied.

        >>> import esscher as es
        >>> es.preset("audit-d4").config({"task.dim": 2})["task"]["dim"]
        2
        """
        return _esscher.preset_config(self.name, _assignments(changes))

    @helpful
    def run(
        self,
        changes: Mapping[str, Any] = {},
        *,
        seed: int = 0,
        out: Out = None,
        shard: str = "",
        progress: Progress = None,
    ) -> Result:
        """Computes it: a Flow, Comparison, Training, Risks, Concentration or TokenLaw, by its verb.

        ``out`` makes the run that ``esscher VERB --preset NAME --out`` makes; either resumes it.
        changes: {"table.key": value}, as ``--set`` of the program; an unknown key is a ConfigError.
        Some presets take long; shorten them, e.g. with {"train.steps": 100} or {"flow.t_end": 1}.

        >>> import esscher as es
        >>> es.preset("zfb-shifts").run({"flow.t_end": 0.5}).status
        't_end'
        """
        seed = as_seed("run", seed)
        with outlet(self.verb, self.name, {}, out=out, shard=shard, progress=progress, seed=seed) as where:
            found: Any = _esscher.run_preset(self.name, self.verb, _assignments(changes), seed, where)
        if self.verb == "icl flow":
            return flow_of(found)
        if self.verb == "icl compare":
            return comparison_of(found)
        if self.verb == "icl train":
            return training_of(found)
        if self.verb == "icl risk":
            return Risks(Rows(found))
        if self.verb == "scaling":
            return TokenLaw(Rows(found), self.config(changes)["tokens"]["kind"])
        return concentration_of(found)

    @helpful
    def check(self, changes: Mapping[str, Any] = {}, *, full: bool = False, seed: int = 0) -> Claims:
        """What its source claims, checked on a run of it, with a verdict per claim; training is shortened unless full.

        >>> import esscher as es
        >>> es.preset("zfb-shifts").check()
        Claims(zfb-shifts: 3 hold, 0 fail, 1 without a number)
        """
        return Claims(self.name, Rows(_esscher.check_preset(self.name, _assignments(changes), full, as_seed("check", seed))))

    def __repr__(self) -> str:
        return f"Preset({self.name!r}, verb={self.verb!r}, title={self.title!r})"


def presets() -> List[Preset]:
    """All published settings, in alphabetical order.

    >>> import esscher as es
    >>> for p in es.presets():
    ...     print(f"{p.name:24} {p.verb}")
    ahn-2306.00297           icl train
    audit-d4                 icl compare
    audit-suite              concentration
    bohbot-moments           concentration
    bohbot-rates             concentration
    boursier-boyer           icl train
    boursier-boyer-released  icl train
    bruno-2605.08505         scaling
    chen-2510.05554          scaling
    gabet-classification     icl risk
    gabet-denoising-one      icl risk
    gabet-denoising-two      icl risk
    gabet-residual           icl risk
    garg-2208.01066          icl flow
    he-2503.12734            icl train
    lu-2405.11751            icl flow
    raventos-2306.15063      icl risk
    single-index-hermite2    icl risk
    single-index-sign        icl risk
    smart-clusters           concentration
    smart-linear             concentration
    smart-sphere             concentration
    von-oswald               icl train
    zfb-shifts               icl flow
    zhang-saxe-merged        icl flow
    zhang-saxe-separate      icl flow
    """
    return [Preset(*fields) for fields in _esscher.presets()]


def preset(name: str) -> Preset:
    """The published setting of that name; ConfigError listing the names otherwise.

    >>> import esscher as es
    >>> print(es.preset("bohbot-rates").expected)
    slope −1 of the mean squared error in the bulk regime, flatter when λ_max passes 1/2
    """
    for found in presets():
        if found.name == name:
            return found
    _esscher.preset_config(name, [])  # raises, with the list of names
    raise AssertionError(name)


def _assignments(changes: Mapping[str, Any]) -> List[str]:
    return [f"{key}={_toml(value)}" for key, value in changes.items()]


def _toml(value: Any) -> str:
    """A value as TOML on one line; an infinite length is the text "inf"."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float) and math.isinf(value):
        return '"inf"'
    return json.dumps(value)
