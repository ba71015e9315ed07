"""tailrace-lab schedule: the instance of figure 1 of Jin et al. 2024, input, output and errors.

Exact solvers are compared with each other and with all orders."""

import importlib.util
import itertools
import json
import os
import stat
import sys

import pytest

from cli_tools import ENVIRONMENT, numbers, own_lines, tailrace

SCHEDULERS = ["ext-johnson", "ext-johnson+bf", "generation-list", "generation-list+bf",
              "one-list-greedy", "two-lists-greedy", "search"]
FIGURE_1 = {
    "jobs": [{"encode_s": 1, "write_s": 2}, {"encode_s": 2, "write_s": 1},
             {"encode_s": 2, "write_s": 2}, {"encode_s": 3, "write_s": 2}],
    "obstacles": {"main": [[3, 4], [6, 7]], "io": [[4, 5]]}}
HERE = {**ENVIRONMENT, "TAILRACE_PYTHON": os.environ.get("TAILRACE_PYTHON", sys.executable)}
SOLVERS = {"ilp": "highspy", "cp-sat": "ortools"}


def needs(*solvers):
    for solver in solvers:
        if "TAILRACE_PYTHON" not in os.environ and not importlib.util.find_spec(SOLVERS[solver]):
            pytest.skip(f"{SOLVERS[solver]} is not installed: pip install -r requirements-full.txt")


def instance_file(folder, instance, name="instance.json"):
    (folder / name).write_text(json.dumps(instance))
    return folder / name


def plans_of(document):
    return {plan["scheduler"]: plan for plan in document["plans"]}


def earliest(start, length, obstacles):
    """Return the earliest start, at or after `start`, without touching an obstacle."""
    for low, high in obstacles:
        if start < high and start + length > low:
            start = high
    return start


def check(instance, plan):
    """Repeat the program's checks with the numbers that it wrote."""
    jobs = instance["jobs"]
    for lane, key, starts in (("main", "encode_s", plan["encode_start_s"]),
                              ("io", "write_s", plan["write_start_s"])):
        taken = [tuple(pair) for pair in instance.get("obstacles", {}).get(lane, [])]
        taken += [(start, start + job[key]) for start, job in zip(starts, jobs) if job[key] > 0]
        taken.sort()
        assert all(a[1] <= b[0] + 1e-9 for a, b in zip(taken, taken[1:])), (lane, taken)
        assert min(starts, default=0) >= 0
    ends = []
    for job, encode, write in zip(jobs, plan["encode_start_s"], plan["write_start_s"]):
        assert write >= encode + job["encode_s"] - 1e-9
        ends.append(write + job["write_s"])
    assert plan["makespan_s"] == pytest.approx(max(ends, default=0), abs=1e-9)


def best_makespan(instance):
    """Find the optimum over all pairs of orders; the earliest starts of some pair are optimal."""
    jobs = instance["jobs"]
    main, io = (sorted(instance["obstacles"][lane]) for lane in ("main", "io"))
    best = float("inf")
    for encodes in itertools.permutations(range(len(jobs))):
        free, encoded = 0, {}
        for j in encodes:
            free = earliest(free, jobs[j]["encode_s"], main) + jobs[j]["encode_s"]
            encoded[j] = free
        for writes in itertools.permutations(range(len(jobs))):
            free = 0
            for j in writes:
                free = earliest(max(free, encoded[j]), jobs[j]["write_s"], io) + jobs[j]["write_s"]
            best = min(best, free)
    return best


def test_the_papers_figure_1(tmp_path):
    document = numbers("schedule", instance_file(tmp_path, FIGURE_1))
    plans = plans_of(document)
    assert list(plans) == SCHEDULERS
    c = plans["ext-johnson"]
    assert c["encode_order"] == c["write_order"] == [0, 2, 3, 1]
    assert c["encode_start_s"] == [0, 10, 1, 7] and c["write_start_s"] == [1, 12, 5, 10]
    assert c["makespan_s"] == 13
    d = plans["ext-johnson+bf"]
    assert d["encode_start_s"] == [0, 4, 1, 7] and d["write_start_s"] == [1, 7, 5, 10]
    assert d["encode_order"] == d["write_order"] == [0, 2, 1, 3]
    assert d["makespan_s"] == 12 == best_makespan(FIGURE_1)
    for plan in plans.values():
        assert plan["valid"]
        check(FIGURE_1, plan)
    assert document["lower_bound_s"] <= 12


def test_both_exact_solvers_prove_figure_1(tmp_path):
    needs("ilp", "cp-sat")
    document = numbers("schedule", instance_file(tmp_path, FIGURE_1), "--exact", "ilp,cp-sat",
                       "--workers", 1, environment=HERE)
    plans = plans_of(document)
    for solver in ("ilp", "cp-sat"):
        plan = plans[solver]
        check(FIGURE_1, plan)
        assert plan["makespan_s"] == 12 and plan["optimal"] and plan["valid"]
        assert plan["solver_bound_s"] == pytest.approx(12, rel=1e-6)
    assert document["best_bound_s"] == 12
    assert plans["ext-johnson"]["gap"] == pytest.approx(1 / 12)


SMALL = [("n=4,seed=1,main-obstacles=2,io-obstacles=2", 1),
         ("n=4,seed=5,main-obstacles=3,io-obstacles=1", 1),
         ("n=5,seed=2,main-obstacles=2,io-obstacles=3", 1),
         ("n=4,seed=3,main-obstacles=2,io-obstacles=2", 1 / 3)]  # Bounds of thirds are rounded.


@pytest.mark.parametrize("shape,scale", SMALL)
@pytest.mark.parametrize("solver", ["ilp", "cp-sat"])
def test_solvers_find_what_trying_out_finds(tmp_path, solver, shape, scale):
    needs(solver)
    instance = numbers("schedule", "--random", shape, "--scheduler", "none")["instance"]
    for job in instance["jobs"]:
        job["encode_s"] *= scale
        job["write_s"] *= scale
    for lane in instance["obstacles"].values():
        lane[:] = [[a * scale, b * scale] for a, b in lane]
    del instance["iteration_s"]
    best = best_makespan(instance)
    document = numbers("schedule", instance_file(tmp_path, instance), "--exact", solver,
                       "--workers", 1, environment=HERE)
    for plan in document["plans"]:
        check(instance, plan)
        assert plan["valid"] and plan["makespan_s"] >= best - 1e-9
    exact = plans_of(document)[solver]
    assert exact["makespan_s"] == pytest.approx(best, rel=1e-6) and exact["optimal"]
    assert exact["solver_bound_s"] <= best * (1 + 1e-6)
    assert document["lower_bound_s"] <= best + 1e-9


def test_a_solver_needs_no_plan_to_start_from(tmp_path):
    needs("cp-sat")
    document = numbers("schedule", instance_file(tmp_path, FIGURE_1), "--scheduler", "none",
                       "--exact", "cp-sat", environment=HERE)
    assert [plan["makespan_s"] for plan in document["plans"]] == [12]


@pytest.mark.parametrize("n_jobs", [0, 1, 30])
def test_random_instances_are_planned_saved_and_read_again(tmp_path, n_jobs):
    words = ["--random", f"n={n_jobs},seed=11,main-load=0.8"]
    drawn = numbers("schedule", *words, "--save", tmp_path / "saved.json")
    assert len(drawn["instance"]["jobs"]) == n_jobs
    saved = json.loads((tmp_path / "saved.json").read_text())
    assert saved == drawn["instance"]
    for plan in drawn["plans"]:
        assert plan["valid"]
        check(saved, plan)
        assert plan["makespan_s"] >= drawn["lower_bound_s"] - 1e-9
    read = numbers("schedule", tmp_path / "saved.json")
    for a, b in zip(drawn["plans"], read["plans"]):
        assert {**a, "plan_s": 0} == {**b, "plan_s": 0}
    other = numbers("schedule", "--random", f"n={n_jobs},seed=12")
    assert n_jobs == 0 or other["instance"] != saved


def test_the_table_says_what_the_json_says(tmp_path):
    file = instance_file(tmp_path, {**FIGURE_1, "iteration_s": 12.5})
    done = tailrace("schedule", file, "--scheduler", "ext-johnson,ext-johnson+bf", "--json",
                    tmp_path / "out.json")
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if "yes" in line}
    assert list(lines) == ["ext-johnson", "ext-johnson+bf"]
    assert "13.0000 s" in lines["ext-johnson"] and "0.500000 s" in lines["ext-johnson"]
    assert "12.0000 s" in lines["ext-johnson+bf"]
    document = json.loads((tmp_path / "out.json").read_text())
    assert [plan["makespan_s"] for plan in document["plans"]] == [13, 12]


@pytest.mark.parametrize("ending,begins", [("png", b"\x89PNG"), ("svg", b"<?xml")])
@pytest.mark.parametrize("n_jobs", [4, 40])
def test_draws_both_lanes(tmp_path, n_jobs, ending, begins):
    plot = tmp_path / f"gantt.{ending}"
    tailrace("schedule", "--random", f"n={n_jobs}", "--plot", plot, "-q")
    drawn = plot.read_bytes()
    assert drawn.startswith(begins)
    if ending == "svg":
        text = drawn.decode()
        assert all(f"{name}: " in text for name in SCHEDULERS)
        assert "main thread; background" in text and "no plan ends before" in text


def spoilt(change):
    instance = json.loads(json.dumps(FIGURE_1))
    change(instance)
    return json.dumps(instance)


BAD = [
    ("{ not json", "not valid JSON"),
    ("[]", "the instance: must be an object"),
    ("{}", "jobs: is missing"),
    (spoilt(lambda i: i["jobs"][2].pop("write_s")), "jobs[2].write_s: is missing"),
    (spoilt(lambda i: i["jobs"][1].update(encode_s="1")), "jobs[1].encode_s: must be a number"),
    (spoilt(lambda i: i["jobs"][1].update(encode_s=-1)), "jobs[1].encode_s: must be at least 0"),
    (spoilt(lambda i: i["jobs"][0].update(encode=1)), "jobs[0].encode: unknown key"),
    (spoilt(lambda i: i.update(obstacle={})), "obstacle: unknown key"),
    (spoilt(lambda i: i["obstacles"].update(cpu=[])), "obstacles.cpu: unknown key"),
    (spoilt(lambda i: i["obstacles"].update(io=[[1]])), "obstacles.io[0]: must be [start, end]"),
    (spoilt(lambda i: i["obstacles"].update(io=[[2, 1]])), "obstacles.io[0]: must be [start, end]"),
    (spoilt(lambda i: i["obstacles"].update(main=[[3, 5], [4, 6]])), "obstacles.main[1]: starts"),
    (spoilt(lambda i: i.update(iteration_s=True)), "iteration_s: must be a number"),
]


@pytest.mark.parametrize("text,complaint", BAD, ids=[c for _, c in BAD])
def test_bad_instances_are_told_by_their_key(tmp_path, text, complaint):
    (tmp_path / "bad.json").write_text(text)
    done = tailrace("schedule", tmp_path / "bad.json", code=2)
    lines = own_lines(done.stderr)
    assert len(lines) == 1 and complaint in lines[0] and "bad.json" in lines[0], lines


REFUSED = [
    ([], "either an INSTANCE or --random"),
    (["x.json", "--random", "n=3"], "either an INSTANCE or --random"),
    (["/no_such_file.json"], "/no_such_file.json"),
    (["--random", "n=many"], "n must be a number"),
    (["--random", "jobs=3"], 'unknown key "jobs"'),
    (["--random", "n=3,main-share=1"], "main-share must be a number"),
    (["--random", "n=3", "--scheduler", "best"], "best"),
    (["--random", "n=3", "--exact", "gurobi"], "ilp, cp-sat"),
    (["--random", "n=3", "--time-limit", "0"], "--time-limit 0"),
    (["--random", "n=3", "--plot", "p.pdf"], ".png or .svg"),
]


@pytest.mark.parametrize("words,complaint", REFUSED, ids=[" ".join(w) for w, _ in REFUSED])
def test_refuses_with_one_clear_line(words, complaint):
    lines = own_lines(tailrace("schedule", *words, code=2).stderr)
    assert len(lines) == 1 and complaint in lines[0], lines


def interpreter(folder, text):
    """Create a program that replaces python3; return the environment that selects it."""
    path = folder / "interpreter"
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {**ENVIRONMENT, "TAILRACE_PYTHON": str(path)}


@pytest.mark.parametrize("solver", SOLVERS)
def test_says_what_to_install_where_a_solver_is_missing(tmp_path, solver):
    # -S disables the installed packages.
    bare = interpreter(tmp_path, f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    done = tailrace("schedule", "--random", "n=3", "--exact", solver, code=3, environment=bare)
    assert f"pip install {SOLVERS[solver]}" in own_lines(done.stderr)[0]
    nobody = {**ENVIRONMENT, "TAILRACE_PYTHON": "/no_such_python"}
    done = tailrace("schedule", "--random", "n=3", "--exact", solver, code=3, environment=nobody)
    assert "/no_such_python" in own_lines(done.stderr)[0]


WRONG_ANSWERS = [
    ("no JSON", "unexpected output"),
    ('{"lower_bound_s": 0, "solve_s": 0, "encode_order": [0, 0], "write_order": [0, 1]}',
     "unexpected output"),
    ('{"lower_bound_s": 1000, "solve_s": 0, "encode_order": [0, 1], "write_order": [0, 1]}',
     "no plan ends before 1000 s, but one ends at"),
]


@pytest.mark.parametrize("answer,complaint", WRONG_ANSWERS)
def test_does_not_believe_a_solver_that_is_wrong(tmp_path, answer, complaint):
    wrong = interpreter(tmp_path, f"#!/bin/sh\ncat > /dev/null\necho '{answer}'\n")
    done = tailrace("schedule", "--random", "n=2", "--exact", "ilp", code=3, environment=wrong)
    assert complaint in own_lines(done.stderr)[0]


def test_a_solver_that_dies_is_an_error_with_its_last_words(tmp_path):
    dying = interpreter(tmp_path, "#!/bin/sh\necho 'out of luck' >&2\nexit 9\n")
    done = tailrace("schedule", "--random", "n=2", "--exact", "ilp", code=3, environment=dying)
    assert "exit code 9: out of luck" in own_lines(done.stderr)[0]


def test_on_two_ranks_one_speaks(tmp_path):
    file = instance_file(tmp_path, FIGURE_1)
    done = tailrace("schedule", file, ranks=2)
    assert done.stdout.count("two-lists-greedy") == 1
    lines = own_lines(tailrace("schedule", "/no_such_file.json", ranks=2, code=2).stderr)
    assert len(lines) == 1
