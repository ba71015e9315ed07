"""Tests that need several nodes: failures of one node, and the file as each node sees it.

scripts/nodes-test runs them at the head of a cluster (tests/nodes/cluster). The head has a client
of the shared file system and runs no ranks, so everything read here was written elsewhere.
nodes-test also runs the related tests of tests/python and tests/mpi there, unchanged.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))

from cli_tools import ENVIRONMENT, command, numbers, smooth, tailrace  # noqa: E402
from test_layouts import extents  # noqa: E402

CLUSTER = os.environ.get("CLUSTER")
N_NODES = int(os.environ.get("CLUSTER_NODES", "2"))
pytestmark = pytest.mark.skipif(CLUSTER is None, reason="not within tests/nodes/cluster")


def cluster(*words, check=True):
    return subprocess.run([CLUSTER, *map(str, words)], capture_output=True, text=True, timeout=60,
                          check=check).stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Three fields of 4 MiB, chunks of 32 KiB."""
    path = tmp_path_factory.mktemp("source") / "in.h5"
    with h5py.File(path, "w") as file:
        for i, name in enumerate("uvw"):
            file.create_dataset(name, data=smooth((64, 128, 128), i), chunks=(8, 32, 32))
    return path


def check(source, target):
    tailrace("verify", source, target)
    with h5py.File(source) as before, h5py.File(target) as after:
        for name in before:
            assert np.array_equal(before[name][()], after[name][()]), name


@pytest.mark.parametrize("layout, writers", [("claimed", "each"), ("claimed", "node"),
                                             ("dense", "each"), ("arena", "each"),
                                             ("arena", "node")])
@pytest.mark.parametrize("ranks", [2, 3, 6])
def test_repack(layout, writers, ranks, source, tmp_path):
    target, trace = tmp_path / "out.h5", tmp_path / "trace.json"
    report = numbers("repack", source, "-o", target, "--codec", "deflate", "--layout", layout,
                     "--writers", writers, "--trace", trace, ranks=ranks)["files"][0]
    check(source, target)
    assert report["n_ranks"] == ranks
    # Ranks are distributed over the nodes in turn; the first of each writes for the others.
    n_writers = min(ranks, N_NODES) if writers == "node" else ranks
    assert {event["pid"] for event in json.loads(trace.read_text())["traceEvents"]
            if event["name"].startswith("write")} == set(range(n_writers))
    stored = extents(target)
    encoded = sum(end - start for start, end in stored)
    assert encoded == report["encoded_bytes"]
    # The file contains the bytes that are reported as unused.
    assert encoded + report["slack_bytes"] <= target.stat().st_size == report["file_bytes"]
    if layout != "arena":
        assert stored[-1][1] - stored[0][0] - encoded <= encoded / 100
        assert report["slack_bytes"] <= encoded / 100


@pytest.mark.skipif(os.environ.get("CLUSTER_MPI") == "mpich", reason="Open MPI's")
def test_files_of_mpi_itself_are_each_nodes_own():
    """A node that loses the shared file system during MPI_Init must not wait there forever."""
    done = subprocess.run(["mpiexec", "-n", str(N_NODES), "sh", "-c", "ls -d /tmp/ompi.*; "
                           "ls -d /mnt/shared/ompi.* 2>&1"], capture_output=True, text=True,
                          env={**os.environ, "TMPDIR": "/mnt/shared"}, timeout=60)
    assert done.stdout.count("/tmp/ompi.node") == N_NODES, done.stdout + done.stderr
    assert done.stdout.count("/mnt/shared/ompi.*") == N_NODES, done.stdout    # "cannot access"


@pytest.mark.parametrize("ranks", [2, 3])
def test_jobs_that_replace_one_file_in_turn(ranks, source, tmp_path):
    """Jobs must not write to the file that a node has cached for the temporary name."""
    other = tmp_path / "other.h5"
    with h5py.File(source) as before, h5py.File(other, "w") as file:
        for name in before:
            file.create_dataset(name, data=before[name][()] + 1, chunks=before[name].chunks)
    target = tmp_path / "out.h5"
    for turn in range(4):
        given = (source, other)[turn % 2]
        tailrace("repack", given, "-o", target, "--codec", "deflate", "--layout", "dense",
                 "--force", ranks=ranks)
        time.sleep(1.2)
        check(given, target)


@pytest.mark.parametrize("turn", range(4))
def test_append_with_claims_between_nodes(turn, tmp_path):
    """Ranks of rank 0's node and of others claim while rank 0 waits for its lane."""
    files = []
    for f in range(6):
        files.append(tmp_path / f"{f}.h5")
        with h5py.File(files[-1], "w") as file:
            rows = np.random.default_rng(100 * turn + f).integers(0, 99, 40_000 + f)
            file.create_dataset("a", data=rows, maxshape=(None,), chunks=(512,))
            file.create_dataset("b", data=rows * 0.5, maxshape=(None,), chunks=(4096,))
    target = tmp_path / "out.h5"
    numbers("concat", "-o", target, "-b", "8MiB", *files[:3], ranks=6)
    numbers("concat", "-a", "-o", target, "-b", "8MiB", *files[3:], ranks=6)
    with h5py.File(target) as file:
        for name in "ab":
            parts = [h5py.File(path)[name][()] for path in files]
            assert np.array_equal(file[name][()], np.concatenate(parts)), name


def expect_refused(done, node):
    """The failure names the host and a rank of it, and is the same on every rank."""
    said = done.stdout + done.stderr
    assert done.returncode not in (0, 139), said
    assert "on this node is not the file that rank 0 has" in said, said
    assert f" on node{node}:" in said, said


@pytest.fixture()
def last_node_unmounted(tmp_path):
    """Simulate a node without the mounted file system that has a folder of the same name."""
    cluster("umount", N_NODES)
    cluster("on", N_NODES, "mkdir", "-p", tmp_path)
    yield N_NODES
    cluster("mount", N_NODES)


def copy_to_node(path, node):
    script = f"mkdir -p '{path.parent}'; cat > '{path}'"
    subprocess.run([CLUSTER, "on", str(node), "sh", "-c", script], input=path.read_bytes(),
                   check=True)


def test_an_output_that_one_node_has_for_itself(source, tmp_path, last_node_unmounted):
    """A node without the mount must not write its chunks to a file of its own."""
    target = tmp_path / "out.h5"
    (tmp_path / "out.h5.partial").write_bytes(b"")
    copy_to_node(tmp_path / "out.h5.partial", last_node_unmounted)
    (tmp_path / "out.h5.partial").unlink()
    copy_to_node(source, last_node_unmounted)
    words = command("repack", source, "-o", target, "--codec", "deflate", ranks=4)
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, env=ENVIRONMENT)
    expect_refused(done, last_node_unmounted)
    assert not target.exists()


def test_an_input_of_which_one_node_has_an_older_copy(source, tmp_path, last_node_unmounted):
    old = tmp_path / "in.h5"
    with h5py.File(source) as now, h5py.File(old, "w") as file:
        for name in now:
            file.create_dataset(name, data=now[name][()] + 1, chunks=now[name].chunks)
    copy_to_node(old, last_node_unmounted)
    old.write_bytes(source.read_bytes())
    words = command("verify", source, old, ranks=4)
    copy_to_node(source, last_node_unmounted)
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, env=ENVIRONMENT)
    expect_refused(done, last_node_unmounted)


def test_a_rank_is_killed_on_another_node(source, tmp_path):
    """The job ends, and the next job takes over its lock and succeeds."""
    target = tmp_path / "out.h5"
    words = command("repack", source, "-o", target, "--codec", "deflate,level=9", "--force",
                    ranks=4)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=ENVIRONMENT) as job:
        for _ in range(200):
            if (tmp_path / "out.h5.partial").exists():
                break
            time.sleep(0.02)
        cluster("on", N_NODES, "sh", "-c", "kill -9 $(pgrep -x tailrace | head -1)", check=False)
        job.communicate(timeout=60)
    tailrace("repack", source, "-o", target, "--codec", "deflate", "--force", ranks=4)
    check(source, target)


def file_system():
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    return [fields[2] for fields in mounts if fields[1] == "/mnt/shared"][-1]    # the topmost


def begun(target):
    for _ in range(500):
        if pathlib.Path(f"{target}.partial").exists():
            return
        time.sleep(0.02)
    pytest.fail("the job did not begin")


def started(words):
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=ENVIRONMENT)


def on(node, *words):
    return [CLUSTER, "on", str(node), *words]


SLOW = "deflate,level=9,engine=zlib"


@pytest.fixture()
def long_source(tmp_path):
    """A file that zlib needs seconds to encode at level 9."""
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        values = np.random.default_rng(1).random((256, 256, 256))
        file.create_dataset("u", data=values, chunks=(16, 64, 64))
    return path


def test_two_nodes_write_one_file(long_source, tmp_path):
    """sshfs has separate locks on each node: a lock held elsewhere looks free."""
    target = tmp_path / "out.h5"
    words = command("repack", long_source, "-o", target, "--codec", SLOW)
    with started(on(1, *words)) as first:
        begun(target)
        words = command("repack", long_source, "-o", target, "--codec", "deflate", "--force")
        second = subprocess.run(on(2, *words), capture_output=True, text=True, timeout=60,
                                env=ENVIRONMENT, check=False)
        said = first.communicate(timeout=60)[0]
    assert second.returncode == 3, second
    assert "is being written by another job (process " in second.stderr
    assert "on node1, since" in second.stderr
    assert ("if that job is dead" in second.stderr) == (file_system() == "fuse.sshfs")
    assert first.returncode == 0, said
    check(long_source, target)


def test_a_node_outlives_rank_0(long_source, tmp_path):
    """Rank 0 is dead, and another node's ranks are stopped: they may still write."""
    if file_system() == "fuse.sshfs":
        pytest.skip("sshfs has no locks between nodes")
    target = tmp_path / "out.h5"
    words = command("repack", long_source, "-o", target, "--codec", SLOW,
                    ranks=2 * N_NODES)
    everything = "$(pgrep -x 'tailrace|orted|prted|hydra_pmi_prox')"
    with started(words) as job:
        begun(target)
        time.sleep(0.3)
        cluster("on", N_NODES, "sh", "-c", f"kill -STOP {everything}")
        cluster("on", 1, "sh", "-c", "kill -9 $(pgrep -x tailrace)", check=False)
        words = command("repack", long_source, "-o", target, "--codec", "deflate", "--force")
        second = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False,
                                env=ENVIRONMENT)
        cluster("on", N_NODES, "sh", "-c", f"kill -CONT {everything}")
        job.communicate(timeout=60)
    assert second.returncode == 3, second
    assert "is still being written on other nodes by another job" in second.stderr
    tailrace("repack", long_source, "-o", target, "--codec", "deflate", "--force", ranks=2)
    check(long_source, target)


def test_appended_chunks_that_move(tmp_path):
    """HDF5 moves some appended chunks into freed space, so rank 0 copies chunks that ranks
    elsewhere have written. Its kernel may have cached their first page earlier, as zeros behind a
    chunk of its own. One in six appends on 3 nodes was wrong."""
    files, rows = [], {}
    for f in range(3):
        files.append(tmp_path / f"{f}.h5")
        with h5py.File(files[-1], "w") as file:
            for name, n in (("u", 30000 + 8000 * f), ("v", 7400), ("w", 12800)):
                values = np.random.default_rng(100 * f + n).integers(0, 1 << 16, (n, 4))
                file.create_dataset(name, data=values.astype("f4"), maxshape=(None, 4),
                                    chunks=(32, 4), compression="gzip")
                rows.setdefault(name, []).append(values)
    for turn in range(6):
        target = tmp_path / f"out{turn}.h5"
        tailrace("concat", "-q", "-o", target, files[0])
        tailrace("concat", "-q", "-a", "-o", target, *files[1:], ranks=6)
    time.sleep(1.2)
    for turn in range(6):
        with h5py.File(tmp_path / f"out{turn}.h5") as file:
            for name, parts in rows.items():
                assert np.array_equal(file[name][()], np.concatenate(parts)), (turn, name)
