#!/usr/bin/env python3
"""Schedule a flow shop with obstacles exactly, by an integer program or a constraint model.

The integer program is that of Jin et al. 2024, figure 12, solved by HiGHS; the constraint model
is solved by CP-SAT of OR-tools. `tailrace-lab schedule --exact` runs this script as a child
process (docs/adr/0012-exact-solvers-by-child-process.md).

Standard input: an instance as `tailrace-lab schedule` reads it, and optionally "lower_bound_s" and
"hint": {"encode_start_s": [...], "write_start_s": [...]}, a plan to start from.
Standard output: {"encode_order", "write_order", "lower_bound_s", "proven", "solver", "solve_s"};
the orders are null if no plan was found in time. The parent starts each operation as soon as
possible in these orders, and computes the times in its own arithmetic.
Exit codes: 0 done, 2 bad input, 3 the solver is not installed.
"""

import argparse
import dataclasses
import json
import math
import sys
import time

MISSING = 3
LANES = ("main", "io")
INFINITE_S = math.inf
# CP-SAT computes in integers. Times that are short decimal fractions are exact in units of a power
# of ten; other times are rounded down to units of the horizon divided by UNITS_OF_HORIZON.
MOST_DIGITS = 7
UNITS_OF_HORIZON = 1 << 30


@dataclasses.dataclass
class Instance:
    """Lengths of each lane's operations by job, and its obstacles, in seconds (or in units)."""
    lengths: dict
    obstacles: dict
    lower_bound: float = 0
    hint: dict | None = None

    @property
    def n_jobs(self):
        return len(self.lengths["main"])

    def windows(self, lane):
        """Free intervals of a lane, from each obstacle's end to the next one's start."""
        ends = [0] + [end for _, end in self.obstacles[lane]]
        starts = [start for start, _ in self.obstacles[lane]] + [INFINITE_S]
        return list(zip(ends, starts))

    def horizon(self):
        """Upper bound of an optimal plan: the hint's end, or all operations after the last
        obstacle.
        """
        if self.hint:
            return max((start + length for lane in LANES
                        for start, length in zip(self.hint[lane], self.lengths[lane])), default=0)
        last = max((end for lane in LANES for _, end in self.obstacles[lane]), default=0)
        return last + sum(sum(self.lengths[lane]) for lane in LANES)


@dataclasses.dataclass
class Answer:
    """Start times by lane and job (None: no plan found), and a lower bound of every plan."""
    starts: dict | None
    lower_bound: float
    proven: bool
    solver: str


def read_instance(text):
    given = json.loads(text)
    lengths = {"main": [float(job["encode_s"]) for job in given["jobs"]],
               "io": [float(job["write_s"]) for job in given["jobs"]]}
    obstacles = {lane: [(float(start), float(end))
                        for start, end in given.get("obstacles", {}).get(lane, [])]
                 for lane in LANES}
    hint = given.get("hint")
    if hint:
        hint = {"main": hint["encode_start_s"], "io": hint["write_start_s"]}
    return Instance(lengths, obstacles, float(given.get("lower_bound_s", 0)), hint)


# --- CP-SAT -------------------------------------------------------------------------------------


def in_whole_units(instance):
    """The instance in integer units, the units per second, and the rounding function.

    If no power of ten makes all times integers, each time is rounded down. Rounding only relaxes
    the problem: if a plan is valid for the real times, its starts rounded down are valid for the
    rounded lengths, since floor(start) + floor(length) <= floor(start + length). So a bound in
    units is a bound in seconds.
    """
    times = [t for lane in LANES for t in instance.lengths[lane]]
    times += [t for lane in LANES for pair in instance.obstacles[lane] for t in pair]
    for digits in range(MOST_DIGITS + 1):
        scale = 10 ** digits
        if all(abs(t * scale - round(t * scale)) < 1e-6 for t in times):
            return scaled(instance, scale, round), scale, round
    scale = UNITS_OF_HORIZON / instance.horizon()
    return scaled(instance, scale, math.floor), scale, math.floor


def scaled(instance, scale, rounded):
    def whole(t):
        return int(rounded(t * scale))
    obstacles = {lane: [(whole(start), whole(end)) for start, end in instance.obstacles[lane]
                        if whole(start) < whole(end)] for lane in LANES}
    hint = instance.hint and {lane: [whole(t) for t in instance.hint[lane]] for lane in LANES}
    # Slightly below the bound, which was computed in another arithmetic.
    bound = math.ceil(instance.lower_bound * scale * (1 - 1e-9) - 1e-6)
    return Instance({lane: [whole(t) for t in instance.lengths[lane]] for lane in LANES},
                    obstacles, bound if rounded is round else bound - 1, hint)


def add_lane(model, cp_model, shop, lane, horizon, earliest, makespan):
    """Starts of a lane's operations, which overlap neither each other nor an obstacle.

    In addition to its interval, each operation chooses a window. The constraint that all operations
    of a window fit into it is redundant, but it bounds the lane's free capacity and so proves
    bounds.
    """
    lengths = shop.lengths[lane]
    windows = [(low, min(high, horizon)) for low, high in shop.windows(lane)]
    windows = [window for window in windows if window[0] <= window[1]]
    starts, intervals = [], []
    chosen = [[] for _ in windows]
    for job, length in enumerate(lengths):
        fitting = [(h, max(low, earliest[job]), high - length)
                   for h, (low, high) in enumerate(windows)
                   if max(low, earliest[job]) + length <= high]
        domain = cp_model.Domain.from_intervals([[low, high] for _, low, high in fitting])
        start = model.new_int_var_from_domain(domain, f"start_{lane}_{job}")
        starts.append(start)
        intervals.append(model.new_fixed_size_interval_var(start, length, f"{lane}_{job}"))
        literals = [model.new_bool_var(f"in_{lane}_{job}_{h}") for h, _, _ in fitting]
        model.add_exactly_one(literals)
        for literal, (h, low, high) in zip(literals, fitting):
            model.add_linear_constraint(start, low, high).only_enforce_if(literal)
            chosen[h].append((job, literal))
    for start, end in shop.obstacles[lane]:
        intervals.append(model.new_fixed_size_interval_var(start, end - start, "obstacle"))
    model.add_no_overlap(intervals)
    for h, ((low, high), members) in enumerate(zip(windows, chosen)):
        if not members:
            continue
        load = sum(lengths[job] * literal for job, literal in members)
        model.add(load <= high - low)
        if high > shop.lower_bound:  # A used window's operations end before the makespan.
            used = model.new_bool_var(f"used_{lane}_{h}")
            for _, literal in members:
                model.add_implication(literal, used)
            model.add(makespan >= low + load).only_enforce_if(used)
    return starts


def break_ties(model, shop, starts):
    """Order identical jobs by their number on both lanes."""
    last = {}
    for job in range(shop.n_jobs):
        kind = (shop.lengths["main"][job], shop.lengths["io"][job])
        if kind in last:
            for lane in LANES:
                model.add(starts[lane][last[kind]] <= starts[lane][job])
        last[kind] = job


def solve_cp_sat(instance, time_limit_s, n_workers):
    import ortools
    from ortools.sat.python import cp_model

    shop, scale, _ = in_whole_units(instance)
    horizon = shop.horizon()
    model = cp_model.CpModel()
    makespan = model.new_int_var(max(0, min(shop.lower_bound, horizon)), horizon, "makespan")
    starts = {"main": add_lane(model, cp_model, shop, "main", horizon, [0] * shop.n_jobs, makespan)}
    starts["io"] = add_lane(model, cp_model, shop, "io", horizon, shop.lengths["main"], makespan)
    for job in range(shop.n_jobs):
        encode_end = starts["main"][job] + shop.lengths["main"][job]
        model.add(starts["io"][job] >= encode_end)
        model.add(makespan >= starts["io"][job] + shop.lengths["io"][job])
    break_ties(model, shop, starts)
    if shop.hint:
        for lane in LANES:
            for variable, value in zip(starts[lane], shop.hint[lane]):
                model.add_hint(variable, value)
        model.add_hint(makespan, horizon)
    model.minimize(makespan)

    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit_s
    if n_workers:
        solver.parameters.num_workers = n_workers
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE or status == cp_model.MODEL_INVALID:
        raise RuntimeError(f"CP-SAT says {solver.status_name(status)}, but a plan always exists")
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    values = {lane: [solver.value(s) for s in starts[lane]] for lane in LANES} if found else None
    return Answer(values, max(solver.best_objective_bound, 0) / scale,
                  status == cp_model.OPTIMAL, f"CP-SAT {ortools.__version__}")


# --- HiGHS --------------------------------------------------------------------------------------


class Rows:
    """Linear program under construction: columns with bounds, rows of sparse coefficients."""

    def __init__(self, infinity):
        self.infinity = infinity
        self.lower, self.upper, self.whole = [], [], []
        self.rows = []

    def column(self, upper, whole=False):
        self.lower.append(0.0)
        self.upper.append(float(upper))
        self.whole.append(whole)
        return len(self.lower) - 1

    def at_least(self, bound, terms):
        self.rows.append((bound, self.infinity, terms))

    def equal(self, value, terms):
        self.rows.append((value, value, terms))


def write_program(shop, horizon, infinity):
    """Figure 12 with Z = horizon, for any horizon that is long enough.

    Equations (7) to (10) of the paper sum over h but index the obstacles by i, the task. They must
    use h: a task in window h starts after obstacle h - 1 and ends before obstacle h. The completion
    times of (3) and (4) are written as start + length.
    """
    rows = Rows(infinity)
    makespan = rows.column(horizon)
    columns = {"makespan": makespan}
    for lane in LANES:
        lengths = shop.lengths[lane]
        start = [rows.column(horizon) for _ in lengths]
        windows = [(low, min(high, horizon)) for low, high in shop.windows(lane) if low < horizon]
        delta = [[rows.column(1, True) for _ in windows] for _ in lengths]
        first = {(i, j): rows.column(1, True)
                 for i in range(shop.n_jobs) for j in range(i + 1, shop.n_jobs)}
        for i, length in enumerate(lengths):
            rows.equal(1, [(d, 1) for d in delta[i]])  # (11), (12)
            rows.at_least(0, [(start[i], 1)] + [  # (7), (8)
                (d, -low) for d, (low, _) in zip(delta[i], windows)])
            rows.at_least(length, [(start[i], -1)] + [  # (9), (10)
                (d, high) for d, (_, high) in zip(delta[i], windows)])
        for (i, j), precedes in first.items():
            rows.at_least(lengths[i] - horizon,  # (5)
                          [(start[j], 1), (start[i], -1), (precedes, -horizon)])
            rows.at_least(lengths[j],  # (6)
                          [(start[i], 1), (start[j], -1), (precedes, horizon)])
        columns[lane] = {"start": start, "delta": delta, "first": first, "windows": windows}
    for i in range(shop.n_jobs):
        encoded, written = columns["main"]["start"][i], columns["io"]["start"][i]
        rows.at_least(shop.lengths["io"][i], [(makespan, 1), (written, -1)])  # (1)
        rows.at_least(shop.lengths["main"][i], [(written, 1), (encoded, -1)])  # (2)
    rows.at_least(min(shop.lower_bound, horizon), [(makespan, 1)])
    return rows, columns


def program_hint(shop, rows, columns, horizon):
    """The hint as values of all columns."""
    values = [0.0] * len(rows.lower)
    values[columns["makespan"]] = horizon
    for lane in LANES:
        own, starts, lengths = columns[lane], shop.hint[lane], shop.lengths[lane]
        for i, start in enumerate(starts):
            values[own["start"][i]] = start
            h = max(h for h, (low, _) in enumerate(own["windows"]) if low <= start + 1e-9)
            values[own["delta"][i][h]] = 1.0
        for (i, j), column in own["first"].items():
            values[column] = float((starts[i], lengths[i]) <= (starts[j], lengths[j]))
    return values


def pass_program(highspy, highs, rows, columns):
    """Pass the program to HiGHS by rows."""
    import numpy as np
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(rows.lower), len(rows.rows)
    cost = np.zeros(lp.num_col_)
    cost[columns["makespan"]] = 1
    lp.col_cost_ = cost
    lp.col_lower_, lp.col_upper_ = np.array(rows.lower), np.array(rows.upper)
    lp.row_lower_ = np.array([row[0] for row in rows.rows], dtype=float)
    lp.row_upper_ = np.array([row[1] for row in rows.rows], dtype=float)
    lp.integrality_ = [highspy.HighsVarType.kInteger if whole else highspy.HighsVarType.kContinuous
                       for whole in rows.whole]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0] + [len(row[2]) for row in rows.rows])
    lp.a_matrix_.index_ = np.array([column for row in rows.rows for column, _ in row[2]])
    lp.a_matrix_.value_ = np.array([value for row in rows.rows for _, value in row[2]], dtype=float)
    highs.passModel(lp)


def solve_ilp(instance, time_limit_s, n_workers):
    import highspy

    # Scale times to thousandths of the horizon, so that the solver's tolerances are relative to it.
    scale = 1000 / max(instance.horizon(), 1e-30)
    shop = Instance({lane: [t * scale for t in instance.lengths[lane]] for lane in LANES},
                    {lane: [(a * scale, b * scale) for a, b in instance.obstacles[lane]]
                     for lane in LANES}, instance.lower_bound * scale * (1 - 1e-9),
                    instance.hint and {lane: [t * scale for t in instance.hint[lane]]
                                       for lane in LANES})
    horizon = shop.horizon()
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("time_limit", float(time_limit_s))
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_feasibility_tolerance", 1e-9)
    if n_workers:
        highs.setOptionValue("threads", n_workers)
    rows, columns = write_program(shop, horizon, highs.getInfinity())
    pass_program(highspy, highs, rows, columns)
    if shop.hint:
        solution = highspy.HighsSolution()
        solution.col_value = program_hint(shop, rows, columns, horizon)
        highs.setSolution(solution)
    highs.run()
    status = highs.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        raise RuntimeError("HiGHS says infeasible, but a plan always exists")
    info = highs.getInfo()
    starts = None
    if info.primal_solution_status == 2:  # kSolutionStatusFeasible
        values = highs.getSolution().col_value
        starts = {lane: [values[column] for column in columns[lane]["start"]] for lane in LANES}
    bound = info.mip_dual_bound if math.isfinite(info.mip_dual_bound) else 0
    proven = status == highspy.HighsModelStatus.kOptimal
    return Answer(starts, max(bound, 0) / scale, proven, f"HiGHS {highs.version()}")


# ------------------------------------------------------------------------------------------------


def order_of(starts, lengths):
    """Order in which a lane works; an operation of length 0 precedes others that start with it."""
    return sorted(range(len(starts)), key=lambda job: (starts[job], lengths[job]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("solver", choices=["ilp", "cp-sat"])
    parser.add_argument("--time-limit", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--workers", type=int, default=0,
                        help="threads; default 0: the choice of the solver")
    arguments = parser.parse_args()
    try:
        instance = read_instance(sys.stdin.read())
    except (ValueError, KeyError, TypeError) as error:
        print(f"exact_schedule.py: bad instance: {error!r}", file=sys.stderr)
        return 2
    if instance.n_jobs == 0:
        print(json.dumps({"encode_order": [], "write_order": [], "lower_bound_s": 0,
                          "proven": True, "solver": "none needed", "solve_s": 0}))
        return 0
    solve = {"ilp": solve_ilp, "cp-sat": solve_cp_sat}[arguments.solver]
    package = {"ilp": "highspy", "cp-sat": "ortools"}[arguments.solver]
    begin = time.monotonic()
    try:
        answer = solve(instance, arguments.time_limit, arguments.workers)
    except ImportError as error:
        print(f"{sys.executable} cannot import {package} ({error}); pip install {package}, or set "
              "TAILRACE_PYTHON to an interpreter that can", file=sys.stderr)
        return MISSING
    starts = answer.starts
    print(json.dumps({
        "encode_order": starts and order_of(starts["main"], instance.lengths["main"]),
        "write_order": starts and order_of(starts["io"], instance.lengths["io"]),
        "lower_bound_s": answer.lower_bound, "proven": answer.proven, "solver": answer.solver,
        "solve_s": time.monotonic() - begin}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
