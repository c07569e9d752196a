"""What every kind of interval needs: a row that counts, the rule by which it is judged, and ways to ask the program."""

import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build/dev/python"))

import numpy as np  # noqa: E402

import esscher as es  # noqa: E402

LOW, HIGH, CHANCE = 0.93, 0.97, 1e-3
MORE = 4  # times the seeds of a second count
HEADER = "| interval | case | sampled | seeds | flagged | covers | nominal | verdict |"


def binomial_quantile(n, p, level):
    """The smallest k with P(Binomial(n, p) <= k) >= level."""
    total = 0.0
    for k in range(n + 1):
        log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        total += math.exp(log + (k * math.log(p) if k else 0) + ((n - k) * math.log1p(-p) if n > k else 0))
        if total >= level:
            return k
    return n


class Row:
    """Counts of one kind of interval in one case. Every row has seeds of its own, so that rows do not share
    their luck. `states_misses` declares an interval with which the program prints a probability: it misses at
    most so often, and may miss less often. All others are judged on both sides."""

    rows = 0
    only = None  # the one row of its kind that is counted, if not all

    def __init__(self, kind, case, sampled, states_misses=False):
        Row.rows += 1
        self.first = 100000 * Row.rows
        self.is_counted = Row.only in (None, Row.rows)
        self.kind, self.case, self.sampled = kind, case, sampled
        self.seeds = self.flagged = self.covered = self.covered_flagged = 0
        self.miss = 0.0 if states_misses else None  # the largest probability of a miss that was stated

    def run(self, count):
        return range(self.first, self.first + count if self.is_counted else self.first)

    def add(self, covers, flagged=False):
        self.seeds += 1
        self.flagged += bool(flagged)
        if flagged:
            self.covered_flagged += bool(covers)
        else:
            self.covered += bool(covers)

    def verdict(self):
        n = self.seeds - self.flagged
        if n == 0:
            return "flagged"
        if self.miss is not None:
            allowed = binomial_quantile(n, max(self.miss, 1e-12), 1 - CHANCE)
            return "passed" if n - self.covered <= allowed else "too few"
        if self.covered < binomial_quantile(n, LOW, CHANCE):
            return "too few"
        return "too many" if self.covered > binomial_quantile(n, HIGH, 1 - CHANCE) else "passed"

    def is_outside(self):
        """Whether so many seeds cover less or more often than the rule asks of infinitely many."""
        n = self.seeds - self.flagged
        share = self.covered / n if n else LOW
        return share < LOW or share > HIGH if self.miss is None else share < 1 - self.miss

    def line(self):
        n = self.seeds - self.flagged
        shown = self.covered / n if n else self.covered_flagged / self.seeds
        nominal = f"{100 * (1 - self.miss):.1f} %" if self.miss is not None else "95 %"
        return (f"| {self.kind} | {self.case} | {self.sampled} | {self.seeds} | {self.flagged} | "
                f"{100 * shown:.1f} % | {nominal} | {self.verdict()} |")


def identity_head(d):
    return es.Attention(U=np.eye(d), V=np.eye(d))


def study_rows(kind, case, sampled, truth, run, seeds):
    """One Row for all lengths of a study: each length of each seed is one interval."""
    row = Row(kind, case, sampled)
    for seed in row.run(seeds):
        for got, want in zip(run(seed).rows, truth):
            row.add(got["ci"][0] <= want <= got["ci"][1], got["heavy"])
    return row


STUDENT = {7: 2.364624, 11: 2.200985, 15: 2.131450, 31: 2.039513}


def covers(value, std_error, truth, dof=None):
    """Whether value +- q std_error holds the truth, q of Student's t with so many degrees of freedom, or 1.96."""
    return abs(value - truth) <= (STUDENT[dof] if dof else 1.959964) * std_error


def within(estimate, truth):
    """value +- 1.96 standard errors, the interval that a reader makes of an estimate of many draws."""
    return abs(estimate.value - truth) <= 1.959964 * estimate.std_error


def say(*words):
    """The document that the program prints."""
    command = [ROOT / "build/dev/cli/esscher", *words, "--threads", "1", "--json", "--quiet"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
