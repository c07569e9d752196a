"""Four mistakes that mypy must find; never run."""

import esscher as es

es.Rademacher("2")
es.universal(10)
es.Attention([[1.0]])
es.Gaussian([[1.0]]).tilted_men([1.0])
