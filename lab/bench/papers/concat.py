#!/usr/bin/env python3
"""Measures `tailrace concat` against concatenation by parallel HDF5, and over files and datasets.

    lab/bench/papers/concat.py compare --set hep16 --csv concat.csv --json concat.json
    lab/bench/papers/concat.py scale --csv concat_scaling.csv --json concat_scaling.json

compare: the baseline (`tailrace-lab bench concat-hdf5`, the design of Lee et al. 2022) and
`tailrace concat` on the same files. make_hep.py makes the files, unless --set names a folder with
a list.txt. First each method writes once on every number of ranks, and every dataset of every
output is compared with h5py's concatenation (concat_digest.py); a difference ends the run with 1.
Then the methods run in turn, A B A B, --rounds times. HDF5 encodes on one thread per rank, like
"tailrace"; "tailrace threads" uses all cores, which matters with more cores than ranks.

scale: time and memory over the number of files (the first of one set), and over the number of
datasets in a file. Outputs are checked in the same way. --memory is the cap. peak_rss_bytes is the
kernel's count for the largest rank, which includes HDF5 and MPI.

Times are reported by the programs, from the first open to the last sync; wall_s includes the
launcher. Needs mpiexec, h5py, numpy, and the programs of the build's bin/ (or of $TAILRACE's
folder).
"""

import argparse
import csv
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import in_situ

ROOT = pathlib.Path(__file__).resolve().parents[3]
STAGES = ("open", "exchange", "create", "read", "decode", "encode", "write", "index", "close",
          "sync")
FILES = [250, 500, 1000, 2000]
DATASETS = [500, 1000, 2000, 4000]


def program():
    return pathlib.Path(os.environ.get("TAILRACE", ROOT / "build" / "bin" / "tailrace"))


def python(script, *arguments):
    """Run a script of lab/bench in a separate process. This process thus stays small, because its
    peak memory also counts for its children."""
    path, = ROOT.glob(f"lab/bench/*/{script}")
    done = subprocess.run([sys.executable, str(path), *map(str, arguments)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{script} {shlex.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
    return done.stdout


def make_set(folder, options, **settings):
    """Run make_hep.py. @returns the path of the list, and make_hep.py's report on the set."""
    folder, report = pathlib.Path(folder), pathlib.Path(f"{folder}.json")
    pairs = [word for key, value in settings.items() for word in (f"--{key}", value)]
    print(python("make_hep.py", folder, "--seed", options.seed, "--json", report, *pairs).strip(),
          file=sys.stderr, flush=True)
    return folder / "list.txt", json.loads(report.read_text())


def command_of(method, list_path, output, options):
    """Command after mpiexec and its options."""
    arguments = ["-o", str(output), "-i", str(list_path), "--fsync", options.fsync]
    if method == "baseline":
        return [str(program().with_name("tailrace-lab")), "bench", "concat-hdf5", *arguments,
                "--buffer", options.buffer]
    if method == "tailrace":
        arguments += ["--threads", "1"]
    return [str(program()), "concat", "-q", "--memory", options.memory, *arguments,
            *shlex.split(options.words)]


def run(method, ranks, list_path, output, options):
    """Run once; the output must not exist yet. @returns the numbers of the run."""
    output, report = pathlib.Path(output), pathlib.Path(f"{output}.json")
    output.unlink(missing_ok=True)
    command = [shutil.which("mpiexec"), "-n", str(ranks),
               *command_of(method, list_path, output, options), "--json", str(report)]
    environment = {**in_situ.MPI_ENVIRONMENT, **os.environ}
    with tempfile.TemporaryFile("w+") as messages:
        start_s = time.monotonic()
        with subprocess.Popen(command, stdout=messages, stderr=messages,
                              env=environment) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.monotonic() - start_s
        if process.returncode != 0:
            messages.seek(0)
            sys.exit(f"{shlex.join(command)} ended with {process.returncode}\n"
                     f"{messages.read()[-3000:]}")
    numbers = json.loads(report.read_text())
    return {**numbers, "wall_s": wall_s, "cpu_s": usage.ru_utime + usage.ru_stime,
            "tree_rss_bytes": usage.ru_maxrss << 10}


def check(list_path, outputs):
    print(python("concat_digest.py", list_path, *outputs).strip(), file=sys.stderr, flush=True)


def row_of(method, ranks, reports):
    """One row with the medians of the rounds."""
    totals = [report["total_s"] for report in reports]
    median_s = statistics.median(totals)
    last = reports[-1]
    row = {"method": method, "ranks": ranks, "threads": last.get("n_threads", 1),
           "rounds": len(totals), "files": last["n_files"], "datasets": last["n_datasets"],
           "empty": last["n_empty"], "raw_bytes": last["raw_bytes"],
           "input_bytes": last["input_bytes"], "output_bytes": last["output_bytes"],
           "total_s": median_s, "smallest_s": min(totals), "largest_s": max(totals),
           "spread": (max(totals) - min(totals)) / median_s}
    for name in ("wall_s", "cpu_s"):
        row[name] = statistics.median(report[name] for report in reports)
    row["peak_rss_bytes"] = max(report["tree_rss_bytes"] for report in reports)
    for key in ("memory_cap_bytes", "peak_memory_bytes", "n_rounds", "n_chunks", "n_copied"):
        row[key] = last.get(key, "")
    for stage in STAGES:
        times = [r["stages"][stage]["mean_s"] for r in reports if stage in r["stages"]]
        row[stage + "_s"] = statistics.median(times) if times else ""
    row["totals_s"] = totals
    return row


# --- comparison with the baseline

def methods_of(ranks):
    return ["baseline", "tailrace"] + (["tailrace threads"] if ranks < os.cpu_count() else [])


def add_factors(rows):
    """Add the speed-up over the baseline on as many ranks, and its certain lower limit: the
    baseline's fastest run over the slowest run."""
    bases = {row["ranks"]: row for row in rows if row["method"] == "baseline"}
    for row in rows:
        base = bases[row["ranks"]]
        row["times_faster"] = base["total_s"] / row["total_s"]
        row["at_least"] = base["smallest_s"] / row["largest_s"]
        row["size_over_baseline"] = row["output_bytes"] / base["output_bytes"]


def compare(options, folder):
    made = None
    if options.set:
        list_path = pathlib.Path(options.set) / "list.txt"
    else:
        list_path, made = make_set(folder / "set", options, files=options.files,
                                   datasets=options.datasets, size=options.size)
    pairs = [(method, ranks) for ranks in options.ranks for method in methods_of(ranks)]
    outputs = {pair: folder / f"{pair[0].replace(' ', '_')}_{pair[1]}.h5" for pair in pairs}
    for pair, output in outputs.items():
        run(*pair, list_path, output, options)
    check(list_path, outputs.values())
    reports = {pair: [] for pair in pairs}
    for number in range(options.rounds):
        for pair, output in outputs.items():
            reports[pair].append(run(*pair, list_path, output, options))
            output.unlink()
        print(f"round {number + 1} of {options.rounds}, load {os.getloadavg()[0]:.1f}",
              file=sys.stderr, flush=True)
    rows = [row_of(*pair, some) for pair, some in reports.items()]
    add_factors(rows)
    save(options, rows, made)
    print(f"{'method':<17}{'ranks':>6}{'total s':>9}{'spread':>8}{'faster':>8}{'at least':>9}"
          f"{'output MB':>11}{'peak MB':>9}")
    for row in rows:
        print(f"{row['method']:<17}{row['ranks']:>6}{row['total_s']:>9.2f}"
              f"{100 * row['spread']:>6.0f} %{row['times_faster']:>7.2f}x{row['at_least']:>8.2f}x"
              f"{row['output_bytes'] / 1e6:>11.1f}{row['peak_rss_bytes'] / 1e6:>9.0f}")


# --- over files and datasets

def scaling_sets(folder, options):
    """Yield (what grows, how many, list) for each size. File lists of all sizes are prefixes of the
    largest one."""
    if options.scale_files:
        most = max(options.scale_files)
        whole, _ = make_set(folder / "files", options, files=most, datasets=200,
                            size=f"{100 * most}KB", images=1)
        lines = whole.read_text().splitlines(keepends=True)
        for count in options.scale_files:
            part = folder / f"files_{count}.txt"
            part.write_text("".join(lines[:count]))
            yield "files", count, part
    for count in options.scale_datasets:
        list_path, _ = make_set(folder / f"datasets_{count}", options, files=16, datasets=count,
                                size=f"{options.dataset_kb * count}KB", images=1)
        yield "datasets", count, list_path


def scale(options, folder):
    sets = list(scaling_sets(folder, options))
    output = folder / "out.h5"
    reports = {(what, count): [] for what, count, _ in sets}
    ranks = options.ranks[0]
    for what, count, list_path in sets:
        run("tailrace", ranks, list_path, output, options)
        check(list_path, [output])
    for number in range(options.rounds):
        for what, count, list_path in sets:
            reports[what, count].append(run("tailrace", ranks, list_path, output, options))
            output.unlink()
        print(f"round {number + 1} of {options.rounds}, load {os.getloadavg()[0]:.1f}",
              file=sys.stderr, flush=True)
    rows = []
    for (what, count), some in reports.items():
        row = {"over": what, **row_of("tailrace", ranks, some)}
        n_headers = row["files"] * row["datasets"]
        row["us_per_file_and_dataset"] = 1e6 * row["total_s"] / n_headers
        row["ms_per_MB"] = 1e3 * row["total_s"] / (row["raw_bytes"] / 1e6)
        rows.append(row)
    save(options, rows, None)
    print(f"{'over':<10}{'files':>6}{'datasets':>9}{'raw MB':>8}{'total s':>9}{'spread':>8}"
          f"{'us/file/dataset':>16}{'cap MB':>8}{'peak RSS MB':>12}")
    for row in rows:
        print(f"{row['over']:<10}{row['files']:>6}{row['datasets']:>9}"
              f"{row['raw_bytes'] / 1e6:>8.0f}{row['total_s']:>9.2f}{100 * row['spread']:>6.0f} %"
              f"{row['us_per_file_and_dataset']:>16.2f}{row['memory_cap_bytes'] / 1e6:>8.0f}"
              f"{row['peak_rss_bytes'] / 1e6:>12.0f}")


# --- results

def machine(options):
    facts = in_situ.machine(options)
    facts.pop("hdf5")  # this is the HDF5 of the applications
    bench = program().parent / "tailrace-bench"
    for name, path in (("hdf5", program()), ("hdf5_of_baseline", bench)):
        done = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False)
        facts[name] = sorted({pathlib.Path(line.split()[2]).resolve().name
                              for line in done.stdout.splitlines()
                              if "libhdf5" in line and "=> /" in line})
    return facts


def save(options, rows, made):
    if options.json:
        whole = {"schema_version": 1, "command": f"lab/bench/papers/concat.py {options.what}",
                 "machine": machine(options), "fsync": options.fsync, "memory": options.memory,
                 "rounds": options.rounds, "words": options.words,
                 "set": made or pathlib.Path(options.set or "").name,
                 "rows": rows}
        pathlib.Path(options.json).write_text(json.dumps(whole, indent=1) + "\n")
    if not options.csv:
        return
    with open(options.csv, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name != "totals_s"],
                                extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value
                             for key, value in row.items()})


def parse(arguments):
    def counts(text):
        return [int(word) for word in text.split(",") if word]

    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["compare", "scale"])
    parser.add_argument("--set", metavar="FOLDER", help="compare: files that are there already")
    parser.add_argument("--files", type=int, default=16, help="compare: of the set to be made")
    parser.add_argument("--datasets", type=int, default=2000, help="the same")
    parser.add_argument("--size", default="846MB", help="the same: raw bytes of all files")
    parser.add_argument("--scale-files", type=counts, default=FILES, help="scale; '' for none")
    parser.add_argument("--scale-datasets", type=counts, default=DATASETS, help="the same")
    parser.add_argument("--dataset-kb", type=int, default=50,
                        help="scale over datasets: raw bytes in all 16 files for each dataset")
    parser.add_argument("--ranks", type=counts, default=[1, 2, 4], help="scale takes the first")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", default="1GiB", help="cap of a rank of tailrace concat")
    parser.add_argument("--buffer", default="128MiB", help="of a rank of the baseline")
    parser.add_argument("--fsync", choices=["on", "off"], default="on", help="inside the times")
    parser.add_argument("--words", default="", help="more options of tailrace concat")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", default="/tmp", help="where sets and outputs are written")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--csv", metavar="FILE")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or not options.ranks or min(options.ranks) < 1:
        parser.error("needs a round and a number of ranks")
    if shutil.which("mpiexec") is None or not program().exists():
        parser.error(f"needs mpiexec, and {program()}")
    options.load_at_start = os.getloadavg()[0]
    return options


def main():
    options = parse(sys.argv[1:])
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        (compare if options.what == "compare" else scale)(options, pathlib.Path(folder))


if __name__ == "__main__":
    main()
