"""SZ3 3.3.2 compiled from source, as a baseline: fetch, check, compile, load.

`cargo vendor` fetches the source from the Rust package sz3-sys (BSD licence), so that a package
registry suffices. The source is stored in build/sz3-3.3.2 and is not part of Tailrace.

    python lab/bench/papers/sz3_source.py      build it and print the library's path
"""

import ctypes
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "build" / "sz3-3.3.2"
PACKAGE = """[package]
name = "sz3-source"
version = "0.0.0"
[lib]
path = "none.rs"
[dependencies]
sz3-sys = "=0.4.1"
"""
SHA256 = "fd50b94038a09c9997d65eee85ffa500515da9e203cec260a4a24d874e0c2533"
VERSION = {"PROJECT_NAME": "SZ3", "PROJECT_VERSION": "3.3.2", "PROJECT_VERSION_MAJOR": "3",
           "PROJECT_VERSION_MINOR": "3", "PROJECT_VERSION_PATCH": "2",
           "PROJECT_VERSION_TWEAK": "0", "SZ3_DATA_VERSION": "3.3.2"}
#: The best flags of SZ3's users, but without fused operations, which break its bound.
FLAGS = ["-std=c++17", "-O3", "-march=native", "-ffp-contract=off", "-DNDEBUG", "-fPIC", "-shared",
         "-w"]


def fetch():
    """Fetch the source and write its version header."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "Cargo.toml").write_text(PACKAGE)
    (FOLDER / "none.rs").touch()
    subprocess.run(["cargo", "vendor", "--quiet"], cwd=FOLDER, check=True,
                   stdout=subprocess.DEVNULL)
    if SHA256 not in (FOLDER / "Cargo.lock").read_text():
        raise RuntimeError("cargo's package sz3-sys is not the one that was expected")
    template, = FOLDER.glob("vendor/sz3-sys/SZ3/include/SZ3/version.hpp.in")
    text = template.read_text()
    for key, value in VERSION.items():
        text = text.replace(f"@{key}@", value)
    template.with_suffix("").write_text(text)


def build():
    """Path of the shared library, which the first call builds."""
    library = FOLDER / "libsz3_source.so"
    wrapper = ROOT / "lab" / "bench" / "papers" / "sz3_source.cpp"
    if library.exists() and library.stat().st_mtime > wrapper.stat().st_mtime:
        return library
    if not list(FOLDER.glob("vendor/sz3-sys/SZ3/include/SZ3/version.hpp")):
        fetch()
    include, = FOLDER.glob("vendor/sz3-sys/SZ3/include")
    subprocess.run(["g++", *FLAGS, f"-I{include}", str(wrapper), "-o", str(library), "-lzstd"],
                   check=True)
    return library


def load():
    library = ctypes.CDLL(str(build()))
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    library.sz3_version.restype = ctypes.c_char_p
    library.sz3_encode.restype = ctypes.c_long
    library.sz3_encode.argtypes = [ctypes.c_int, ctypes.POINTER(size), ctypes.c_int,
                                   ctypes.c_double, ctypes.c_int, pointer, pointer, size]
    library.sz3_decode.argtypes = [ctypes.c_int, pointer, size, pointer]
    return library


if __name__ == "__main__":
    print(build())
