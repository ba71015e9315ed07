"""`tailrace options`: the same table as docs/options.md, readable in a terminal of 80 columns."""

import re

import pytest

from cli_tools import ENVIRONMENT, ROOT, own_lines, tailrace


def documented():
    """Return names and meanings of docs/options.md, which a unit test compares with the table."""
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z.-]+)=` (.*?) \| (.*?) \| (.*?)"
                      r"(?: \(\*(rank 0's|each rank's)\*\))? \|$",
                      page.partition("## Of a codec")[0], re.MULTILINE)
    assert len(rows) > 25
    return rows


def words(text):
    return " ".join(text.split())


def test_lists_every_option_in_80_columns():
    text = tailrace("options", environment=ENVIRONMENT | {"COLUMNS": "80"}).stdout
    assert max(map(len, text.splitlines())) <= 80
    for name, values, _, meaning, _ in documented():
        assert f"\n  {name}=" in text and words(f"{name}={values}") in words(text)
        assert words(meaning) in words(text)
    assert re.search(r"^  deflate +level, shuffle, engine, checksum$", text, re.MULTILINE)


@pytest.mark.parametrize("ranks", [1, 3])
def test_tells_more_of_one(ranks):
    for name, values, default, meaning, alike in documented()[:: 1 if ranks == 1 else 12]:
        text = words(tailrace("options", name, ranks=ranks).stdout)
        used = alike or "the same on all ranks"
        for said in (f"{name}={values}", meaning, f"default: {default};", f"value used: {used}"):
            assert text.count(words(said)) == 1, (name, said, text)


def test_knows_codecs_and_their_settings():
    assert "rate, precision, reversible" in tailrace("options", "zfp").stdout
    level = tailrace("options", "level").stdout
    assert "zstd" in level and "sz3" not in level


def test_a_misspelt_name_is_answered_with_the_nearest():
    done = tailrace("options", "layuot", code=2)
    assert done.stdout == "" and 'did you mean "layout"?' in own_lines(done.stderr)[0]
    assert "options" in tailrace("--help").stdout
