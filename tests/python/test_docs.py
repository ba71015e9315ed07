"""The pages link to pages, and to headings, that are there."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["docs", "bench", "examples", "tests"]


def anchors(page):
    """What headings are called in links, as code hosts make it of them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"^#+ +(.*?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_links_lead_somewhere():
    pages = [*ROOT.glob("*.md")]
    for name in FOLDERS:
        pages += (ROOT / name).rglob("*.md")
    assert len(pages) > 50
    links, wrong = 0, []
    for page in pages:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if "://" in link:
                continue
            links += 1
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                wrong.append(f"{page.relative_to(ROOT)}: {link}")
    assert links > 100 and wrong == []
