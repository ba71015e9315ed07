"""The compilation of sources alone by scripts/lint, which finds a missing include."""

import importlib.machinery
import importlib.util
import os
import subprocess

import pytest

from cli_tools import ROOT


@pytest.fixture
def lint(tmp_path, monkeypatch):
    """The script as a module, for an own checkout with one commit."""
    loader = importlib.machinery.SourceFileLoader("lint", os.path.join(ROOT, "scripts", "lint"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    files = {"four.hpp": "#pragma once\nconstexpr int kFour = 4;\n",
             "sum.hpp": '#pragma once\n#include "four.hpp"\nint sum();\n',
             "product.cpp": '#include "four.hpp"\nint product() { return kFour * kFour; }\n',
             "sum.cpp": '#include "sum.hpp"\nint sum() { return kFour + 1; }\n',
             "twice.cpp": '#include "sum.hpp"\nint twice() { return 2 * sum(); }\n'}
    for name, text in files.items():
        (tmp_path / "src" / name).write_text(text)
    for command in (["init", "-q"], ["add", "."],
                    ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "a"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return module


SOURCES = ["src/product.cpp", "src/sum.cpp", "src/twice.cpp"]


def failing_alone(lint):
    part = lint.Compilation(SOURCES, ["c++", "-Isrc"], str(lint.ROOT))
    return [source for source in SOURCES if lint.errors_alone(source, part)]


def changed(lint):
    return lint.changed_sources("HEAD", ["*.cpp"], ["*.hpp"], set(SOURCES),
                                users_of_shrunk_headers=True)


def test_a_source_that_needs_a_neighbours_include_is_found(lint):
    assert failing_alone(lint) == []
    source = lint.ROOT / "src/sum.cpp"
    source.write_text(source.read_text().replace('#include "sum.hpp"\n', ""))
    joined = lint.ROOT / "joined.cpp"
    joined.write_text("".join(f'#include "{lint.ROOT / name}"\n' for name in SOURCES))
    subprocess.run(["c++", "-Isrc", "-fsyntax-only", joined], cwd=lint.ROOT, check=True)
    assert changed(lint) == failing_alone(lint) == ["src/sum.cpp"]


def test_a_header_that_loses_an_include_stands_for_all_that_include_it(lint):
    assert changed(lint) == []
    header = lint.ROOT / "src/sum.hpp"
    header.write_text(header.read_text() + "int more();\n")
    assert changed(lint) == ["src/sum.cpp"]
    header.write_text(header.read_text().replace('#include "four.hpp"\n', ""))
    assert changed(lint) == ["src/sum.cpp", "src/twice.cpp"]
    assert failing_alone(lint) == ["src/sum.cpp"]
