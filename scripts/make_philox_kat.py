#!/usr/bin/env python3
"""Writes tests/data/philox_kat.txt: an independent form of esscher/random/stream.cc in NumPy.

Each line: kind seed stream index value..., all in hexadecimal (floats as IEEE bit patterns).
"""
import struct
import sys

import numpy as np

M0, M1, W0, W1, MASK = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85, 0xFFFFFFFF


def philox(counter, key):
    x, (k0, k1) = list(counter), key
    for _ in range(10):
        p0, p1 = M0 * x[0], M1 * x[2]
        x = [(p1 >> 32) ^ x[1] ^ k0, p1 & MASK, (p0 >> 32) ^ x[3] ^ k1, p0 & MASK]
        k0, k1 = (k0 + W0) & MASK, (k1 + W1) & MASK
    return x


def halves(x):
    return x & MASK, x >> 32


def block(seed, stream, i):
    return philox(halves(i) + halves(stream), halves(seed))


def split(seed, stream, child):
    k0, k1 = halves(seed)
    x = philox(halves(child) + halves(stream), (k0 ^ MASK, k1 ^ MASK))
    return x[0] | x[1] << 32


def bits(seed, stream, i):
    x = block(seed, stream, i // 2)
    return x[2 * (i % 2)] | x[2 * (i % 2) + 1] << 32


def uniform(b):
    return (float(b >> 12) + 0.5) * 2.0**-52


LOG = [6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
       1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01]
SIN = [-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
       2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10]
COS = [4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
       -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11]


def as_bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def from_bits(b):
    return struct.unpack("<d", struct.pack("<Q", b))[0]


def log64(u):
    x = as_bits(u) + 0x3FF0000000000000 - 0x3FE6A09E00000000
    k = float((x >> 52) - 1023)
    f = from_bits((x & (2**52 - 1)) + 0x3FE6A09E00000000) - 1.0
    hfsq, s = 0.5 * f * f, f / (2.0 + f)
    z = s * s
    w = z * z
    t1 = w * (LOG[1] + w * (LOG[3] + w * LOG[5]))
    t2 = z * (LOG[0] + w * (LOG[2] + w * (LOG[4] + w * LOG[6])))
    return s * (hfsq + (t2 + t1)) + k * 1.90821492927058770002e-10 - hfsq + f + k * 6.93147180369123816490e-01


def horner(c, z):
    p = c[-1]
    for a in c[-2::-1]:
        p = a + z * p
    return p


def normal64(seed, stream, i):
    b0, b1 = bits(seed, stream, i - i % 2), bits(seed, stream, i - i % 2 + 1)
    rho = float(np.sqrt(np.float64(-log64(uniform(b0)))))
    x = (float(b1 & (2**52 - 1)) - (2.0**51 - 0.5)) * 2.0**-51 * 7.85398163397448278999e-01
    z = x * x
    sine = x + x * z * horner(SIN, z)
    cosine = 1.0 - (0.5 * z - z * z * horner(COS, z))
    value = rho * (cosine + sine if i % 2 else cosine - sine)
    return -value if (b1 >> (62 if i % 2 else 63)) & 1 else value


F = np.float32
LOGF = [F(c) for c in (0.9999998211860657, -0.5000063180923462, 0.3333611488342285, -0.2496049553155899,
                       0.19874423742294312, -0.17323389649391174, 0.16409990191459656, -0.10119298100471497)]
SINF = [F(c) for c in (0.7853981852531433, -0.08074543625116348, 0.002490007085725665, -3.595450834836811e-05)]
COSF = [F(c) for c in (1.0, -0.3084242641925812, 0.015849914401769638, -0.0003188805130776018)]


def normal32(seed, stream, i):
    words = block(seed, stream, i // 4)
    first, second = words[0:2] if i % 4 < 2 else words[2:4]
    u = F(first >> 1) * F(2.0**-31) + (F((second >> 2) & 0xFF) * F(2.0**-39) + F(2.0**-40))
    x = int(u.view(np.uint32)) + 0x3F800000 - 0x3F3504F3
    f = np.uint32((x & 0x7FFFFF) + 0x3F3504F3).view(F) - F(1)
    log = F((x >> 23) - 127) * F(0.6931471805599453) + f * horner(LOGF, f)
    rho = np.sqrt(-log)
    signed = second - 2**32 if second >> 31 else second
    y = (F(signed >> 10) + F(0.5)) * F(2.0**-21)
    z = y * y
    sine, cosine = y * horner(SINF, z), horner(COSF, z)
    value = rho * (cosine + sine if i % 2 else cosine - sine)
    return -value if (second >> (0 if i % 2 else 1)) & 1 else value


def main(path):
    with open(path, "w", encoding="ascii") as out:
        out.write("# kind seed stream index value...  (hexadecimal; made by scripts/make_philox_kat.py)\n")
        for seed, stream in ((0, 0), (1, 0), (7, 0x9E3779B97F4A7C15), (2**64 - 1, 2**64 - 1), (0x0123456789ABCDEF, 42)):
            for i in (0, 1, 2, 3, 5, 2**32 - 1, 2**32, 2**32 + 1, 2**63 + 3):
                head = f"{seed:x} {stream:x} {i:x}"
                out.write(f"block {head} " + " ".join(f"{w:x}" for w in block(seed, stream, i)) + "\n")
                out.write(f"split {head} {split(seed, stream, i):x}\n")
                out.write(f"uniform {head} {as_bits(uniform(bits(seed, stream, i))):x}\n")
                out.write(f"normal {head} {as_bits(normal64(seed, stream, i)):x}\n")
                out.write(f"normal32 {head} {int(normal32(seed, stream, i).view(np.uint32)):x}\n")


if __name__ == "__main__":
    main(sys.argv[1])
