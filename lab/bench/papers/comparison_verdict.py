"""Checks the rows of compare_sz3.py against the goals: ratios and speeds compared with SZ3.

    python lab/bench/papers/comparison_verdict.py lab/bench/results/trz_sz3.csv
"""

import collections
import csv
import math
import sys

SZ3_OF_WHEEL = ("pysz", "pysz-lorenzo")


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def harmonic(values):
    return len(values) / sum(1 / value for value in values)


def share(flags):
    flags = list(flags)
    return f"{100 * sum(flags) / len(flags):.0f} % of {len(flags)}" if flags else "none"


def pairs_of(rows):
    """Rows by codec, for each pair of set and bound."""
    pairs = collections.defaultdict(dict)
    for row in rows:
        pairs[row["file"], row["field"], row["dtype"], row["bound"]][row["codec"]] = row
    return pairs


def number(row, column):
    return float(row[column])


def best_sz3(codecs):
    return max(number(codecs[name], "ratio") for name in SZ3_OF_WHEEL)


def speed_table(pairs):
    names = list(dict.fromkeys(name for codecs in pairs.values() for name in codecs))
    yield (f"{'codec':20} {'type':4} {'pairs':>5} {'ratio':>8} {'encode':>8} {'decode':>8}"
           f" {'error/bound':>12} {'beyond':>8} {'special':>8}")
    for dtype in ("f32", "f64"):
        for name in names:
            rows = [codecs[name] for key, codecs in pairs.items()
                    if key[2] == dtype and name in codecs]
            if not rows or not rows[0].get("encode_MB_per_s"):
                continue
            yield (f"{name:20} {dtype:4} {len(rows):5}"
                   f" {geometric([number(r, 'ratio') for r in rows]):8.2f}"
                   f" {harmonic([number(r, 'encode_MB_per_s') for r in rows]):8.0f}"
                   f" {harmonic([number(r, 'decode_MB_per_s') for r in rows]):8.0f}"
                   f" {max(number(r, 'error_over_bound') for r in rows):12.6g}"
                   f" {sum(int(r['values_beyond_bound']) for r in rows):8}"
                   f" {sum(int(r['special_changed']) for r in rows):8}")


def speed_goals(pairs):
    """Speeds on the Nyx and Nyx-like fields of 8 MB, as multiples of SZ3's on the same chunk."""
    chosen = [codecs for key, codecs in pairs.items()
              if ("nyx128" in key[0] or key[1].startswith("nyx_")) and key[2] == "f32"]
    if not chosen:
        return
    yield "Nyx and Nyx-like, 8 MB of f32, all bounds:"
    for preset in ("trz-default", "trz-fast", "trz-ratio"):
        encode = [number(c[preset], "encode_MB_per_s") for c in chosen]
        decode = [number(c[preset], "decode_MB_per_s") for c in chosen]
        line = (f"  {preset}: encode {harmonic(encode):.0f} MB/s ({min(encode):.0f} to "
                f"{max(encode):.0f}), decode {harmonic(decode):.0f} ({min(decode):.0f} to "
                f"{max(decode):.0f})")
        for other in ("sz3-3.3.2", "pysz"):
            if all(other in c for c in chosen):
                times = [number(c[preset], "encode_MB_per_s") / number(c[other], "encode_MB_per_s")
                         for c in chosen]
                line += f"; encode {geometric(times):.1f} x {other} (least {min(times):.1f})"
        yield line


def ratio_goals(pairs):
    everything = list(pairs.values())
    gain = [(number(c["trz-default"], "ratio") / best_sz3(c), number(c["trz-default"], "ratio"), k)
            for k, c in pairs.items()]
    yield "default, ratio against the better mode of pysz:"
    yield (f"  at least 97 %: {share(g >= 0.97 for g, _, _ in gain)} (goal 85 %); at least 90 % "
           f"where the ratio is under 60: {share(g >= 0.9 for g, r, _ in gain if r < 60)} (goal "
           f"all); geometric mean {geometric([g for g, _, _ in gain]):.3f}")
    for g, ratio, key in sorted(gain)[:6]:
        yield f"    {g:.3f} at ratio {ratio:.1f}: {' '.join(key)}"
    better = [number(c["trz-ratio"], "ratio") / best_sz3(c) for c in everything]
    faster = [number(c["trz-ratio"], "encode_MB_per_s") / number(c["pysz"], "encode_MB_per_s")
              for c in everything]
    yield (f"ratio: at least SZ3's ratio on {share(g >= 1 for g in better)} (goal 80 %), at "
           f"{geometric(faster):.1f} x the speed of pysz (least {min(faster):.1f}; goal 3)")
    masked = [number(c["trz-default"], "ratio") / best_sz3(c) for c in everything
              if int(c["pysz"]["masked"])]
    if masked:
        yield (f"masked fields: at least SZ3's ratio on {share(g >= 1 for g in masked)} (goal all),"
               f" least {min(masked):.3f}")
    hard = [number(c["trz-default"], "ratio") / max(best_sz3(c), number(c["zstd-3"], "ratio"))
            for c in everything if int(c["pysz"]["hard"])]
    if hard:
        yield (f"particles: at least 95 % of the better of SZ3 and Zstd-3 on "
               f"{share(g >= 0.95 for g in hard)} (goal all), least {min(hard):.3f}")
    bad = sum(int(row[column]) for c in everything for name, row in c.items()
              if name.startswith("trz") for column in ("values_beyond_bound", "special_changed"))
    yield f"values of trz beyond their bound, or NaN and fill values changed: {bad} (goal 0)"


def text(rows):
    pairs = pairs_of(rows)
    return "\n".join([*speed_table(pairs), "", *speed_goals(pairs), "", *ratio_goals(pairs)])


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


if __name__ == "__main__":
    print(text(read(sys.argv[1])))
