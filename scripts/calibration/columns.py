"""Which row of docs/calibration.md counts the interval that a column states. Every error, interval and bracket that the
program or the Python package prints is named here, with the rows that count it or with the reason why there is
nothing to count. python/tests/test_calibration.py fails for a column that is missing here."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = r"((?:\w+_)?(?:std_error|error|low|high|ci|bracket))"

CURVE = ("D(L), given queries", "D(L), given queries, direct", "D(L), drawn queries", "D(L), nets of queries",
         "D(L), dependent tokens", "gradient in U, given query")
SLOPE = ("slope, given queries", "slope, drawn queries")
LOCAL = ("exponent of neighbouring lengths",)
BRACKET = ("length bracket, one given query", "length bracket, drawn queries", "length bracket, mixture")
RISK = ("icl risk, softmax, quadrature", "icl risk, linear, simulated heads", "icl risk, softmax, simulated heads",
        "icl risk, softmax, drawn tasks", "risk of a layer, drawn",
        "risk of a layer, quadrature")
BAYES = ("icl risk, Bayes",)
GAP = ("gradient gap along training",)
LIMIT = ("size of the limit, drawn queries",)
CAUSES = tuple(f"cause of a head: {cause}" for cause in
               ("kurtosis", "tails", "drift", "clusters", "dominant", "position"))
OUTPUT = ("output of a prompt, direct",)

COUNTED = {
    "PointRow.std_error": CURVE, "StudyRow.std_error": CURVE, "StudyRow.ci": CURVE, "DecayRow.std_error": CURVE,
    "DecayRow.low": CURVE, "DecayRow.high": CURVE, "CurvePoint.std_error": CURVE, "CurvePoint.low": CURVE,
    "CurvePoint.high": CURVE,
    "MetricFit.std_error": SLOPE, "MetricFit.ci": SLOPE,
    "LocalExponent.std_error": LOCAL, "ExponentPoint.std_error": LOCAL, "SigmaPoint.std_error": SLOPE,
    "Reach.low": ("length for 1 %, off the curve",), "Reach.high": ("length for 1 %, off the curve",),
    "SupRow.std_error": ("sup over queries",), "SupRow.ci": ("sup over queries",),
    "MomentRow.std_error": ("moments of outputs",), "MomentFit.std_error": ("slope of moments",),
    "MomentFit.ci": ("slope of moments",),
    "LengthAnswer.limit_std_error": LIMIT, "concentration.cc: std_error": LIMIT,
    "concentration.cc: ci": LIMIT,
    "concentration.cc: bracket": BRACKET,
    "HeadDiagnosis.kappa_low": ("kappa of a head",), "HeadDiagnosis.kappa_high": ("kappa of a head",),
    "heads.cc: low": ("kappa of a head",), "heads.cc: high": ("kappa of a head",),
    "CauseRow.low": CAUSES, "CauseRow.high": CAUSES, "BudgetRow.lin_c_std_error": ("error at equal memory",),
    "EffectRow.kl_low": ("KL over blocks of text",), "EffectRow.kl_high": ("KL over blocks of text",),
    "RiskRow.std_error": RISK + BAYES, "FlowRow.risk_std_error": RISK, "FlowRow.bayes_std_error": BAYES,
    "TwinRow.std_error": RISK, "TwinRow.bayes_std_error": BAYES, "OptimumRow.std_error": RISK,
    "OptimumRow.bayes_std_error": BAYES,
    "TrainingRow.std_error": RISK, "ExperimentRow.std_error": RISK, "ExperimentRow.bayes_error": BAYES,
    "es.Estimate.std_error": RISK + BAYES,
    "TemperatureRow.std_error": RISK, "TemperatureRow.factor_std_error": ("best factor",),
    "TemperatureRow.gain_std_error": ("gain of the best factor",), "BestRow.factor_error": ("best factor",),
    "TrainRow.std_error": ("training loss",), "TrainRow.low": ("training loss",), "TrainRow.high": ("training loss",),
    "es.LossPoint.std_error": ("training loss",),
    "TwinRow.length_low": ("L(eps) of training",), "TwinRow.length_high": ("L(eps) of training",),
    "TwinRow.gradient_gap_std_error": GAP, "GapRow.std_error": GAP,
    "ScalingRow.H_median_error": ("median of H",), "universal.cc: H_median_error": ("median of H",),
    "attend_prompt.cc: std_error": OUTPUT, "es.Attended.std_error": OUTPUT,
    "es._RiskGradient.std_error": ("gradient of icl risk, softmax",),
    "es._LayerGradient.std_error": ("gradient of a layer's risk, drawn",),
}

DISTANCE = "a distance of two known outputs, risks or numbers: nothing is sampled"
SPREAD = "a quantile over queries: it tells how they differ and holds no unknown"
CHOSEN = "the error of one number of a curve, at the place where the curve was looked up"
MEAN = "the error of a mean over independent prompts, which the section judges against a known number in five errors"
QUADRATURE = "the difference of two quadratures of one integral: nothing is sampled"
CURVATURE = "an eigenvalue or slope, of which this is the least or the largest"
ENDS = "the ends of another column's interval, in a picture"

NOT_COUNTED = {
    "LengthAnswer.std_error": CHOSEN, "TwinRow.sup_gradient_gap_std_error": CHOSEN,
    "PrefixRow.control_low": SPREAD, "PrefixRow.control_high": SPREAD, "HeadDiagnosis.tau2_low": SPREAD,
    "HeadDiagnosis.tau2_high": SPREAD,
    "HeadDiagnosis.control_test_error": DISTANCE, "LayerRow.error": DISTANCE, "LayerRow.wo_error": DISTANCE,
    "HeadEffectRow.error": DISTANCE, "EffectRow.error": DISTANCE, "EffectRow.wo_error": DISTANCE,
    "GrowingRow.error": DISTANCE, "ExpertRow.relative_error": DISTANCE, "LemmaRow.relative_error": DISTANCE,
    "TrainingRow.limit_error": DISTANCE, "ScalingRow.error": DISTANCE, "ScalingRow.predicted_error": DISTANCE,
    "ScalingRow.crossover_error": DISTANCE, "attend.cc: error": DISTANCE, "attend_head.cc: error": DISTANCE,
    "attend_prompt.cc: error": DISTANCE, "heads.cc: plan_error": DISTANCE, "heads.cc: error": DISTANCE,
    "model.cc: wo_error": DISTANCE, "universal.cc: error": DISTANCE, "es._ScoreFunctions.error": DISTANCE,
    "es._Universal.error": DISTANCE,
    "length.cc: error": "the tolerance that was asked for", "es.LengthAnswer.error": "the tolerance that was asked for",
    "universal.cc: std_error": "0: integrals of one variable, to rounding",
    "GrowingRow.ratio_error": MEAN, "GrowingRow.false_error": MEAN, "GoldenRow.H_error": MEAN,
    "RegimeRow.H_error": MEAN,
    "OptimaRow.value_error": QUADRATURE, "AdaptsRow.risk_error": QUADRATURE, "FiniteRow.excess_error": QUADRATURE,
    "HeadsRow.bayes_error": QUADRATURE, "GeneralRow.risk_error": QUADRATURE, "GeneralRow.gap_error": QUADRATURE,
    "ExperimentRow.curvature_low": CURVATURE, "ExperimentRow.curvature_high": CURVATURE,
    "ExperimentRow.slope_low": CURVATURE, "ExperimentRow.slope_high": CURVATURE,
    "es.Chart.low": ENDS, "es.Chart.high": ENDS, "es.Curve.low": ENDS, "es.Curve.high": ENDS,
    "es.Bar.low": ENDS, "es.Bar.high": ENDS,
}


def owned(files, owner, named, label):
    """The names that `named` finds in the files, after the last thing that `owner` found before."""
    for file in files:
        last = ""
        for line in file.read_text().splitlines():
            last = next((m.group(1) for m in [re.match(owner, line)] if m), last)
            for m in re.finditer(named, line):
                yield label.format(owner=last, file=file.name, name=next(filter(None, m.groups())))


def printed():
    """Every error and interval that is printed: columns of rows, keys that documents add to them, fields in Python."""
    sources = [f for f in sorted(ROOT.glob("esscher/**/*")) if f.suffix in (".h", ".cc")]
    documents = [*sorted(ROOT.glob("esscher/json/*.cc")), *sorted(ROOT.glob("cli/*.cc"))]
    keys = rf'put\(\w+, "{NAME}"|\{{"{NAME}", |\["{NAME}"\] = '
    return {*owned(sources, r"(?:struct|class) (\w+)", rf'\bcolumn\("{NAME}"', "{owner}.{name}"),
            *owned(documents, r"(\b\B)", keys, "{file}: {name}"),
            *owned(sorted(ROOT.glob("python/esscher/*.py")), r"class (\w+)", rf"^    {NAME}: ", "es.{owner}.{name}")}


def counted_kinds():
    """Patterns of the first words of all rows: those that scripts/calibration names, and those that tests record."""
    named = r'(?:\bRow|study_rows|record_coverage)\((?:\w+\+*,\s*)?f?"([^"]+)"'
    files = [*ROOT.glob("scripts/calibration/*.py"), *ROOT.glob("tests/*/*_test.cc")]
    words = {word for file in files for word in re.findall(named, file.read_text())}
    return {re.sub(r"\\\{\w+\\\}", ".+", re.escape(word)) for word in words}


def is_counted(row):
    return any(re.fullmatch(pattern, row) for pattern in counted_kinds())


def rows_of_page():
    """The first column of the table of docs/calibration.md."""
    lines = (ROOT / "docs/calibration.md").read_text().splitlines()
    return {line.split("|")[1].strip() for line in lines if line.startswith("| ") and line.count("|") == 9}


def page():
    """Which columns each row counts, and the reasons of the others, as two tables."""
    reasons, rows = {}, {}
    for column, kinds in COUNTED.items():
        for kind in kinds:
            rows.setdefault(kind, []).append(column)
    for column, reason in NOT_COUNTED.items():
        reasons.setdefault(reason, []).append(column)

    def table(first, second, of):
        lines = [f"| {first} | {second} |", "|---|---|"]
        lines += [f"| {name} | {', '.join(f'`{column}`' for column in columns)} |" for name, columns in of.items()]
        return "\n".join(lines)

    counted = table("interval", "printed as", rows)
    return counted + "\n\nNothing is counted for these:\n\n" + table("why", "columns", reasons)
