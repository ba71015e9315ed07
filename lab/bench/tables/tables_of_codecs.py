"""Tables of codecs, predicted sizes, layouts and plans.

Each function makes one table out of the rows of its CSVs (table_parts.table); lab/bench/README.md
names the programs that measure them.
"""

import collections
import math
import statistics

from table_parts import lines, table, unique


def geometric(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def three_digits(value):
    return f"{value:#.3g}".rstrip(".")


def column(rows, key):
    return [float(row[key]) for row in rows if row[key] != ""]


# --- codecs: lab/bench/papers/compare_sz3.py, tailrace-lab bench codecs

@table("lab/bench/results/README.md", "trz_sz3.csv")
def trz_sz3(rows):
    """Fields of 128^3: ratio, and MB/s of encoding and decoding."""
    mine = [row for row in rows if row["dtype"] == "f32" and row["shape"] == "128x128x128"]
    made = []
    for bound in ("rel=1e-02", "rel=1e-03", "rel=1e-04"):
        cells = []
        for codec in ("trz-default", "trz-fast", "pysz", "sz3-3.3.2"):
            some = [row for row in mine if row["codec"] == codec and row["bound"] == bound]
            speeds = (statistics.harmonic_mean(column(some, f"{what}_MB_per_s"))
                      for what in ("encode", "decode"))
            cells.append(three_digits(geometric(column(some, "ratio"))) + ", " +
                         ", ".join(f"{speed:.0f}" for speed in speeds))
        made.append([f"1e-{int(bound[-2:])}", *cells])
    return lines(["rel", "`trz`: ratio, encode, decode", "`preset=fast`", "pysz", "SZ3 3.3.2"],
                 made)


@table("lab/bench/results/README.md", "gather_steps.csv")
def gather_steps(rows):
    """Chunks of one step and of several: ratio of the first, encoded bytes of the others relative
    to it."""
    names = {"nyx": "Nyx, each step", "md": "md, each step", "md_every_10": "md, each tenth step"}
    made = []
    for data, field, bound in unique((row["data"], row["field"], row["bound"]) for row in rows):
        mine = {int(row["steps_per_chunk"]): row for row in rows
                if (row["data"], row["field"], row["bound"]) == (data, field, bound)}
        one = int(mine[1]["encoded_bytes"])
        made.append([names[data], field.replace("_", " "), bound,
                     f"{int(mine[1]['raw_bytes']) / one:.2f}",
                     *(f"{int(mine[n]['encoded_bytes']) / one - 1:+.1%}".replace("%", " %")
                       for n in (2, 4, 8))])
    return lines(["data", "field", "bound", "ratio, 1 step", "2 steps", "4", "8"], made)


@table("lab/bench/results/README.md", "ratio_peers.csv")
def ratio_peers(rows):
    """Bytes of all fields of a set, and the number of pairs in which ours exceed the smallest
    peer's."""
    groups = {"Nyx 128^3": ["nyx128"], "Nyx 64^3": ["nyx64_s0", "nyx64_s1", "nyx64_steps"],
              "climate": ["climate"], "particles": ["nyx64_particles", "lammps"]}
    peers = unique(row["codec"] for row in rows if not row["codec"].startswith("trz-"))
    made = []
    for name, begins in groups.items():
        mine = [row for row in rows if row["file"].startswith(tuple(begins))]
        for rel in unique(row["rel"] for row in mine):
            pairs = {}
            for row in mine:
                if row["rel"] == rel and row["encoded_bytes"]:
                    pair = pairs.setdefault((row["file"], row["field"]), {})
                    pair[row["codec"]] = int(row["encoded_bytes"])
            least = [min(pair[peer] for peer in peers if peer in pair) for pair in pairs.values()]
            cells = [f"{name}, {len(pairs)} fields" if rel == "1e-02" else "",
                     rel.replace("e-0", "e-"), f"{sum(least) / 1e6:.3f} MB"]
            for ours in ("trz-default", "trz-ratio", "trz-max"):
                sizes = [pair[ours] for pair in pairs.values()]
                more = sum(size > 1.05 * other for size, other in zip(sizes, least))
                cells.append(f"{1 - sum(sizes) / sum(least):.1%}, {more}".replace("%", " %"))
            made.append(cells)
    return lines(["fields", "rel", "least of the others", "`default` smaller by, larger in",
                  "`ratio`", "`max`"], made)


#: Sets of real fields, by the prefix of their file's name, with their names in the results' README.
SETS = {"climate": "climate", "lammps": "LAMMPS atoms", "nyx128": "Nyx 128^3",
        "nyx64_particles": "Nyx particles", "nyx64_s060": "Nyx 64^3, step 60",
        "nyx64_s140": "Nyx 64^3, step 140", "nyx64_steps": "Nyx, ten steps"}


@table("lab/bench/results/README.md", "xor_codecs.csv", "xor_paper.csv")
def xor_lossless(rows, paper):
    mine = [row for row in rows if row["codec"] != "none" and not row["refused"]]
    codecs = ["xor", "trz", "trz-fast", "trz-ratio", "zstd", "lz4", "bitshuffle", "deflate"]
    by_codec = {codec: [row for row in mine if row["codec"] == codec] for codec in codecs}

    def ratios(begin):
        return {codec: column([row for row in some if row["file"].startswith(begin)], "ratio")
                for codec, some in by_codec.items()}

    made = []
    for begin, name in [*SETS.items(), ("", "all")]:
        some = ratios(begin)
        their = next(row["ratio"] for row in paper if row["data"] == name)
        made.append([f"{name} ({len(some['xor'])})", their,
                     *(f"{geometric(some[codec]):.3f}" for codec in codecs)])
    for what in ("encode", "decode"):
        speeds = [column(by_codec[codec], f"{what}_MB_per_s") for codec in codecs]
        made.append([f"{what} MB/s", "", *(f"{statistics.harmonic_mean(s):.0f}" for s in speeds)])
        made.append([f"{what} MB/s, slowest field", "", *(f"{min(s):.0f}" for s in speeds)])
    sizes = {codec: {(row["file"], row["field"]): int(row["encoded_bytes"]) for row in some}
             for codec, some in by_codec.items()}
    smaller = [sum(size < sizes["xor"][field] for field, size in sizes[codec].items())
               for codec in codecs]
    their = next(row["ratio"] for row in paper if row["data"] == "smaller than xor on")
    made.append(["smaller than `xor` on", their, "-", *smaller[1:]])
    heads = [f"`{codec.replace('-', ',preset=')}`" for codec in codecs]
    return lines(["data (fields)", "paper", *heads], made)


#: Codecs of lab/bench/papers/lossless.py, with their names in the page.
EXACT = {"trz-fast": "`trz,preset=fast`", "trz": "`trz`", "trz-ratio": "`trz,preset=ratio`",
         "pcodec-8": "pcodec 8", "pcodec-12": "pcodec 12", "openzl": "OpenZL", "zstd-19": "Zstd 19",
         "xor": "`xor`"}
WITHIN, TIMES = 1.03, 5


def verdict_of(field):
    """Verdict on one field: 2 if a preset of trz is the smallest of all codecs. 1 if one is within
    3 % of the smallest and encodes five times as fast. Otherwise 0."""
    n_bytes = {codec: int(row["encoded_bytes"]) for codec, row in field.items()}
    speed = {codec: float(row["encode_MB_per_s"]) for codec, row in field.items()}
    own = [codec for codec in field if codec.startswith("trz")]
    best = min((codec for codec in field if codec not in own), key=n_bytes.get)
    if any(n_bytes[codec] <= n_bytes[best] for codec in own):
        return 2
    return int(any(n_bytes[codec] <= WITHIN * n_bytes[best] and
                   speed[codec] >= TIMES * speed[best] for codec in own))


@table("lab/bench/results/README.md", "lossless.csv")
def lossless(rows):
    fields = collections.defaultdict(dict)
    for row in rows:
        fields[row["dtype"], row["file"], row["field"]][row["codec"]] = row
    dtypes = sorted({dtype for dtype, _, _ in fields})
    made = []

    def counted(some):
        verdicts = [verdict_of(field) for field in some]
        good = sum(verdict > 0 for verdict in verdicts)
        return [verdicts.count(2), verdicts.count(1), f"{100 * good / len(verdicts):.0f} %"]

    def ratios(some):
        return [three_digits(geometric([int(field[codec]["raw_bytes"]) /
                                        int(field[codec]["encoded_bytes"])
                                        for field in some if codec in field]))
                if any(codec in field for field in some) else "" for codec in EXACT]

    for dtype in dtypes:
        some = [field for (of, _, _), field in fields.items() if of == dtype]
        made.append([f"{dtype} ({len(some)})", *ratios(some), *counted(some)])
    # Use only fields that every codec of the table has, so that the means are comparable.
    shared = [field for field in fields.values() if field.keys() >= EXACT.keys()]
    made.append([f"all that all take ({len(shared)})", *ratios(shared), *counted(shared)])
    if len(shared) < len(fields):
        made.append([f"all ({len(fields)})", *("" for _ in EXACT), *counted(fields.values())])
    for what in ("encode", "decode"):
        speeds = []
        for codec in EXACT:
            some = [field[codec] for field in shared]
            n_bytes = column(some, "raw_bytes")  # Sum over all fields.
            speeds.append(statistics.harmonic_mean(column(some, f"{what}_MB_per_s"), n_bytes))
        made.append([f"{what}, MB/s ({len(shared)})", *(f"{speed:.0f}" for speed in speeds),
                     "", "", ""])
    return lines(["type (fields)", *EXACT.values(), "smallest", "within 3 % at 5x", "together"],
                 made)


# --- shared books: lab/bench/micro/shared_book.cpp

#: Sources of codes, by their names in the CSV, with their text in the table.
BOOKS = {"same": "the same step", "previous": "the step before", "first": "the first step",
         "early": "30 to 39 steps before"}


@table("lab/bench/results/README.md", "shared_book.csv")
def shared_book(rows):
    """Every step but the first, compared with each chunk's own codes."""
    chunks = {"8 MiB": "8 MiB: eight copies of a step, axes of each in another order",
              "1 MiB": "1 MiB", "128 KiB": "128 KiB"}
    totals = collections.defaultdict(lambda: collections.defaultdict(float))
    for row in rows:
        if row["field"] == "field" or row["step"] == "0":
            continue  # heading of another run's table; steps without a predecessor
        pair = (row["field"], row["relative_bound"])
        for key in ("encode_s", "decode_s", "encoded_bytes"):
            totals[row["chunk"], row["codes"], pair][key] += float(row[key])
    made = []
    for chunk, name in chunks.items():
        pairs = [pair for where, codes, pair in totals if (where, codes) == (chunk, "own")]
        for codes, label in BOOKS.items():
            def change(key, some, over=totals, where=chunk, way=codes):
                return 100 * (sum(over[where, way, pair][key] for pair in some) /
                              sum(over[where, "own", pair][key] for pair in some) - 1)

            def sign(value, digits):
                return f"{value:+.{digits}f}"
            encode = [change("encode_s", [pair]) for pair in pairs]
            ratio = [100 * (1 / (1 + change("encoded_bytes", [pair]) / 100) - 1) for pair in pairs]
            made.append([name if codes == "same" else "",
                         label + (", 1 to 9 before" * ((codes, chunk) == ("first", "8 MiB"))),
                         f"{sign(change('encode_s', pairs), 1)} % ({sign(min(encode), 1)} to "
                         f"{sign(max(encode), 1)})",
                         f"{sign(change('decode_s', pairs), 1)} %",
                         f"{sign(min(ratio), 2)} to {sign(max(ratio), 2)} %"])
    return lines(["chunks", "book of", "encode time, all eight pairs (each)", "decode time",
                  "ratio (each)"], made)


# --- plans: lab/bench/papers/schedule_gaps.py

@table("lab/bench/results/README.md", "schedule_gaps.csv")
def schedule_gaps(rows):
    made = []
    for n_jobs in unique(row["n"] for row in rows):
        mine = {row["scheduler"]: row for row in rows if row["n"] == n_jobs}
        gaps = [f"{float(mine[name]['mean_gap_percent']):.2f} %, "
                f"{float(mine[name]['greatest_gap_percent']):.0f} %"
                for name in ("ext-johnson", "ext-johnson+bf", "one-list-greedy", "search")]
        search = mine["search"]
        times = [f"{float(search[key]):.1f}" for key in ("median_plan_ms", "greatest_plan_ms")]
        made.append([n_jobs, *gaps, f"{search['n_optimal']} of {search['n_optimum_known']}",
                     f"{', '.join(times)} ms"])
    return lines(["jobs", "`ext-johnson`: mean, greatest", "`ext-johnson+bf`", "`one-list-greedy`",
                  "`search`", "optima found, of those known", "`search`: median, longest time"],
                 made)


# --- layouts: lab/bench/micro/layout_space.cpp

#: Sets that the constants were fitted to, and others.
FITTED = ("nyx64_s140.h5", "nyx64_steps090_099.h5 by steps", "climate.h5")
HELD_OUT = ("nyx64_s060.h5", "nyx128_s040.h5", "nyx64_particles_s090.h5")


@table("lab/bench/results/README.md", "layout_space.csv")
def layout_space(rows):
    def cell(some):
        encoded = sum(column(some, "encoded_bytes"))
        overhead = sum(column(some, "slack_bytes")) / encoded
        overflow = sum(column(some, "n_overflow_chunks")) / sum(column(some, "n_chunks"))
        return f"{100 * overhead:.1f} %, {100 * overflow:.2f} %"

    made = []
    order = {name: place for place, name in enumerate(("arena", "predictive", "hybrid"))}
    spaces = unique((r["layout"], r["space"]) for r in rows)
    cases = unique((r["layout"], r["space"], r["n_ranks"]) for r in rows if r["layout"] in order)
    for layout, space, ranks in sorted(cases, key=lambda case: (order[case[0]],
                                                                spaces.index(case[:2]))):
        mine = [row for row in rows
                if (row["layout"], row["space"], row["n_ranks"]) == (layout, space, ranks)]
        first = [row for row in mine if row["steps"] == "first"]
        later = [row for row in mine if row["steps"] == "later"]
        made.append([f"{layout} {space}".strip(), ranks, cell(first),
                     *(cell([row for row in first if row["data"] in some])
                       for some in (FITTED, HELD_OUT)),
                     *(cell([row for row in later if row["data"].startswith(begin)])
                       for begin in ("nyx", "climate", "lammps"))])
    return lines(["layout", "ranks", "first step: all sets", "fitted", "held out",
                  "later steps: Nyx", "climate, by months", "LAMMPS"], made)


# --- sizes: lab/bench/micro/size_prediction.cpp

#: Rows of the table: files, kinds of data and chunk shapes that count (None: all).
PREDICTED = {
    "8 MB, Nyx 128^3": (("nyx128",), "native", "128x128x128"),
    "8 MB, synthetic": (("synthetic",), "synthetic", None),
    "1 MB, Nyx": (("nyx64_s060", "nyx64_s140", "nyx128"), None, "64x64x64"),
    "10 Nyx steps, 1 MB": (("nyx64_steps",), None, None),
    "0.8-5 MB, climate": (("climate",), None, None),
    "1 MB, particles": (("nyx64_particles",), None, None),
    "LAMMPS, 3 steps, 0.5 MB": (("lammps",), None, None),
}
FORECASTS = ("stepwise", "running")


def mean_and_p95(rows, method):
    """Mean and 95th percentile of |predicted / encoded - 1|, in percent."""
    some = [row for row in rows if row[method] not in ("", "0")]
    if method in FORECASTS:
        some = [row for row in some if float(row[f"{method}_deviation"] or 0) > 0]
    errors = sorted(abs(float(row[method]) / float(row["encoded"]) - 1) for row in some)
    if not errors:
        return "-"
    p95 = errors[math.ceil(0.95 * len(errors)) - 1]
    return f"{100 * statistics.fmean(errors):.1f} / {100 * p95:.1f}"


def within_deviation(rows):
    found = [abs(float(row[method]) - float(row["encoded"])) <= float(row[f"{method}_deviation"])
             for row in rows for method in FORECASTS
             if float(row[f"{method}_deviation"] or 0) > 0]
    return f"{100 * statistics.fmean(found):.0f}" if found else "-"


@table("lab/bench/results/README.md", "size_prediction.csv")
def size_prediction(rows):
    made = []
    for name, (begins, data, chunk) in PREDICTED.items():
        group = [row for row in rows if row["file"].startswith(begins)
                 and data in (None, row["data"]) and chunk in (None, row["chunk"])]
        for codec in ("trz", "trz-fast", "sz3", "zfp", "sperr", "portable", "deflate", "zstd"):
            mine = [row for row in group if row["codec"] == codec]
            if not mine:
                continue
            encode_s = sum(column(mine, "encode_s"))
            sample, uniform = (100 * sum(column(mine, key)) / encode_s
                               for key in ("sample_s", "uniform_s"))
            made.append([name, codec,
                         *(mean_and_p95(mine, method) for method in
                           ("uniform", "sample", "previous", *FORECASTS)),
                         f"{sample:.1f} ({uniform:.1f})", within_deviation(mine)])
    return lines(["chunks", "codec", "uniform 12^3", "sample", "previous", "step by step",
                  "running", "cost (uniform)", "within 1 sd"], made)


# --- the choice: tailrace-lab bench choice

@table("lab/bench/results/README.md", "choice_grid.csv")
def choice(rows):
    """Number of cells in which auto is near the best candidate, with and without the time of
    choosing."""
    near = 1.05
    sets = unique(row["data"] for row in rows)
    cells = [row for row in rows if row["auto_over_best"]]

    def cells_of(some):
        if not some:
            return ["", ""]
        first, later = column(some, "auto_over_best"), column(some, "later_over_best")
        return [f"{len(some)}, {sum(x <= near for x in first)}, {sum(x <= near for x in later)}",
                f"{statistics.median(first):.2f}, {statistics.median(later):.2f}"]

    made = []
    for limit in [*unique(row["W_bytes_per_s_per_rank"] for row in cells), None]:
        mine = [row for row in cells if limit in (None, row["W_bytes_per_s_per_rank"])]
        name = "all" if limit is None else limit_text(limit)
        made.append([name, *(cell for one in sets
                             for cell in cells_of([row for row in mine if row["data"] == one]))])
    heads = [head for one in sets for head in
             (f"{one}: cells, within 5 %, later steps within 5 %", "median of auto / best, later")]
    return lines(["W a rank", *heads], made)


def limit_text(limit):
    return limit if limit == "unlimited" else f"{float(limit) / 1e6:g} MB/s"
