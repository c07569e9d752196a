"""What a run of version 2 must export after the upgrade: expected.py EXPORT.json > NAME.json.

EXPORT.json is `esscher export --json` of the program that wrote the run. This script and
esscher/store/old_rows.cc say the same twice, on purpose, in two languages."""

import json
import re
import sys

# A null was infinity here, NaN elsewhere.
INFINITE = {"concentration": {"asymptotic"}, "paper": {"constant"}}
ABSENT = {
    "conserved_drift", "alpha", "limit_distance", "limit_b", "distance", "risk_before", "best_k", "length",
    "fitted_up_to", "value", "lambda", "gamma",
}  # null was no number


def readout(row):
    heads = {}
    for name in [n for n in row if re.fullmatch(r"(head\d+_)?(U_\d+_\d+|r_\d+)", n)]:
        tag = re.match(r"(head\d+_)?", name).group()
        heads.setdefault(tag, {})[name[len(tag):]] = row.pop(name)
    if heads:
        row["U"], row["r"] = [], []
    for tag in sorted(heads):
        entries = heads[tag]
        dim = sum(name.startswith("r_") for name in entries)
        row["U"] += [[entries[f"U_{i}_{j}"] for j in range(dim)] for i in range(dim)]
        row["r"] += [entries[f"r_{i}"] for i in range(dim)]


def head(row):
    old = json.loads(row["detail"])
    new = {"cell": row["cell"]}
    new.update({k: v for k, v in old.items() if not isinstance(v, (dict, list)) and k != "linear_from_text"})
    new["tau2_low"], new["tau2_high"] = old["tau2_range"]
    for name in ("mean_only", "uncentred", "gaussian_split"):
        new.update({f"{name}_{part}": old[name][part] for part in ("lin", "lin_c")})
    if new["linear_from"] is None:
        new["linear_from"] = "inf"
    new["verdict_kind"] = {"linear here": "linear_here"}[old["verdict"]]
    new["mixtures"] = []
    for mixture in old["mixtures"]:
        flat = {k: v for k, v in mixture.items() if not isinstance(v, dict)}
        for name in ("in_sample", "split"):
            flat.update({f"{name}_{part}": x for part, x in (mixture[name] or {}).items()})
        new["mixtures"].append(flat)
    for name in ("cost", "prefixes", "score_histogram"):
        new[name] = old[name]
    new["score_mixture"] = (old["score_mixture"] or {"density": []})["density"]
    return new


def upgraded(verb, row):
    if verb == "concentration":
        row["bias2"] = row.pop("bias")
        if "cov" in row:
            row["cov"] = [float(word) for word in row["cov"].split()]
    if verb == "heads":
        row = head(row)
    if verb.startswith("icl "):
        readout(row)
    for name in [n for n, value in row.items() if value is None]:
        if name in ABSENT:
            del row[name]
        else:
            row.setdefault("not_finite", {})[name] = "inf" if name in INFINITE.get(verb, ()) else "nan"
    return row


document = json.load(open(sys.argv[1]))
json.dump([upgraded(document["verb"], row) for row in document["rows"]], sys.stdout, indent=1)
print()
