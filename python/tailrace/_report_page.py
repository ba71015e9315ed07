"""The HTML of report(): one page, no scripts, no links to external resources.

Texts from files (names, attributes, units) pass through html_text(). Pictures are SVG inside the
page, as images, so that their content cannot affect the page.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import os
import secrets
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Optional

from ._measures import bytes_text, percent_text, ratio_text, shape_text
from ._native import __version__
from ._printable import html_text

if TYPE_CHECKING:
    from ._report import Report, VariableReport

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff;
       max-width: 1080px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2.2em; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: .6em 0; font-variant-numeric: tabular-nums; }
th, td { padding: .25em .8em .25em 0; text-align: left; border-bottom: 1px solid #d8dee4;
         vertical-align: top; overflow-wrap: break-word; }
td.n, th.n { text-align: right; white-space: nowrap; }
.banner { padding: .8em 1em; border-radius: 6px; font-size: 1.1em; font-weight: 600; }
.good { background: #e6f4ea; color: #0b5423; } .bad { background: #c4161c; color: #fff; }
.none { background: #eef1f4; } .doubt { background: #fff3cd; color: #664d03; }
.fail { color: #c4161c; font-weight: 700; } .pass { color: #0b5423; font-weight: 600; }
.wide { overflow-x: auto; } img { max-width: 100%; height: auto; }
small, figcaption { color: #57606a; } figure { margin: 1em 0; } details { margin: .6em 0; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } figure {
  break-inside: avoid; } .bad { border: 3px solid #c4161c; color: #c4161c; background: #fff; } }
"""

_NO_FIGURES = ("Figures are drawn where matplotlib is installed (pip install matplotlib); this "
               "page was made without it.")


def _row(cells: Iterable[str], tag: str = "td", numbers: Sequence[int] = ()) -> str:
    """Make a row; cells are HTML already."""
    made = "".join(f'<{tag} class="n">{cell}</{tag}>' if at in numbers else f"<{tag}>{cell}</{tag}>"
                   for at, cell in enumerate(cells))
    return f"<tr>{made}</tr>"


def _bound_text(one: VariableReport) -> str:
    if one.bound in ("exact", "none known") or one.absolute_bound is None:
        return one.bound
    if one.bound.startswith("abs="):
        return one.bound
    return f"{one.bound} (abs {one.absolute_bound:.4g})"


def _verdict_html(one: VariableReport) -> str:
    if one.kept is None:
        return "no bound known"
    if one.kept:
        return '<span class="pass">pass</span>'
    return (f'<span class="fail">FAIL: {one.n_beyond_bound:,} of {one.verdict.n_values:,} values '
            "beyond the bound</span>")


def _error_text(one: VariableReport) -> str:
    if one.max_error == 0 and not one.failed:
        return "0"
    return f"{one.max_error:.4g}"


def _share_of_bound(one: VariableReport) -> str:
    share = one.verdict.details.get("max_error_over_bound")
    return "" if share is None or one.kept is None else f"{100 * share:.1f} %"


def summary_table(variables: Sequence[VariableReport], *, links: bool = True) -> str:
    """Make a table with one row for each variable, with links to its section."""
    head = ("variable", "type", "shape", "codec", "bound", "ratio", "largest error", "of bound",
            "PSNR, dB", "verdict")
    numbers = (5, 6, 7, 8)
    body = ""
    for at, one in enumerate(variables):
        name = html_text(one.path.lstrip("/"))
        body += _row((f'<a href="#v{at}">{name}</a>' if links else name, html_text(one.dtype),
                      shape_text(one.shape), html_text(one.codec) or "&ndash;",
                      html_text(_bound_text(one)),
                      "&ndash;" if one.ratio is None else ratio_text(one.ratio), _error_text(one),
                      _share_of_bound(one),
                      "exact" if one.max_error == 0 and not one.failed
                      else "&ndash;" if one.psnr_db is None else f"{one.psnr_db:.1f}",
                      _verdict_html(one)), numbers=numbers)
    return (f'<div class="wide"><table><thead>{_row(head, "th", numbers)}</thead>'
            f"<tbody>{body}</tbody></table></div>")


def _banner(report: Report) -> str:
    failed = [one for one in report.values() if one.failed]
    if failed or report.problems:
        texts = []
        if failed:
            n_beyond = sum(one.n_beyond_bound for one in failed)
            names = ", ".join(one.path.lstrip("/") for one in failed[:8])
            more = f" and {len(failed) - 8} more" if len(failed) > 8 else ""
            texts.append(f"BOUND BROKEN: {n_beyond:,} value{'s' * (n_beyond != 1)} of "
                         f"{len(failed)} variable{'s' * (len(failed) != 1)} beyond the error "
                         f"bound ({names}{more}).")
        texts += report.problems
        lines = "<br>".join(map(html_text, texts))
        return f'<p class="banner bad" role="alert">{lines}</p>'
    judged = [one for one in report.values() if one.kept is not None]
    n_other = len(report) - len(judged)
    if n_other:
        text = f"{n_other} of {len(report)} variables have no known error bound to be held to"
        rest = f"; {len(judged)} within theirs" if judged else ""
        return f'<p class="banner none">{text}{rest}.</p>'
    if len(judged) == 1:
        text = "The variable is within its error bound, every value of it."
    else:
        text = f"All {len(judged)} variables are within their error bounds, every value of them."
    return f'<p class="banner good">{text}</p>'


def _doubts(report: Report) -> str:
    """List bounds that hold but mean little, usually because of an undeclared fill value."""
    lines = "<br>".join(map(html_text, report.doubts))
    return f'<p class="banner doubt" role="alert">{lines}</p>' if lines else ""


def _special_text(details: dict[str, Any]) -> str:
    counts = [f"{details[key]:,} {word}" for key, word in
              (("n_nan", "NaN"), ("n_inf", "infinite"), ("n_fill", "fill")) if details[key]]
    if not counts:
        return "none"
    changed = details["n_special_changed"]
    return f"{', '.join(counts)}; " + (f"{changed:,} of them CHANGED" if changed else
                                       "all kept bit for bit")


def _facts(one: VariableReport) -> str:
    details = one.verdict.details
    unit = f" {one.units}" if one.units else ""
    rows: list[tuple[str, str]] = [
        ("values", f"{one.verdict.n_values:,} of {one.dtype}, shape {shape_text(one.shape)}"),
        ("chunks", "not chunked" if one.chunks is None else shape_text(one.chunks)),
        ("NaN, infinite, fill", _special_text(details)),
        ("bound", _bound_text(one)),
        ("largest error", _largest_text(one, unit)),
    ]
    if one.ratio is not None:
        stored = details["encoded_bytes"]
        rows[1:1] = [("codec", one.codec or "none"),
                     ("size", f"{bytes_text(details['raw_bytes'])} stored as {bytes_text(stored)}, "
                              f"ratio {ratio_text(one.ratio)}")]
    if one.effects is not None and one.effects.n_lost:
        rows.append(("lost", f"{one.effects.n_lost:,} of the numbers came back as NaN or infinite, "
                             "and are left out of what follows"))
    if one.effects is not None and one.effects.n:
        was = one.effects
        shift = was.mean_shift
        rows += [("mean", f"{was.mean:.6g}{unit}, changed by {was.mean_change:+.3g} "
                          f"({percent_text(shift, sign=True)} % of the standard deviation)"),
                 ("standard deviation", f"{was.std:.6g}{unit}, changed by "
                                        f"{percent_text(was.std_change, sign=True)} %")]
    if one.near is not None and one.near.n and one.drawn is not None:
        rows.append(("gradients", f"RMS error {percent_text(one.near.gradient_error)} % "
                                  f"along {one.drawn.axes_text} ({one.drawn.box_text})"))
        rows.append(("spectrum", "power within 5 % up to "
                     f"{percent_text(one.near.spectrum_kept)} % of the wave numbers along "
                     f"{one.drawn.axes_text}"))
    body = "".join(_row((html_text(name), html_text(text))) for name, text in rows)
    return f"<table><tbody>{body}</tbody></table>"


def _largest_text(one: VariableReport, unit: str) -> str:
    share = _share_of_bound(one)
    worst = one.verdict.details.get("worst")
    unit = " of the value" if one.pointwise_bound else unit
    text = _error_text(one) + (unit if one.max_error else "")
    if share:
        text += f", {share} of the bound"
    if worst and one.max_error:
        text += f", at {worst['index']}: {worst['original']} became {worst['decoded']}"
    return text


def _offenders(one: VariableReport) -> str:
    if not one.failed:
        return ""
    rows = "".join(_row(map(html_text, (str(entry["index"]), str(entry["original"]),
                                     str(entry["decoded"]), f"{_error_of(entry)}")))
                   for entry in one.verdict.details["offenders"])
    table = (f"<table><thead>{_row(('position', 'original', 'decoded', 'error'), 'th')}</thead>"
             f"<tbody>{rows}</tbody></table>") if rows else ""
    n = one.n_beyond_bound
    return (f'<p class="banner bad" role="alert">{n:,} value{"s lie" if n != 1 else " lies"} '
            f"beyond the bound {html_text(_bound_text(one))}.</p>{table}")


def _error_of(entry: dict[str, Any]) -> str:
    error = entry.get("error")
    return "inf" if error is None else f"{error:.4g}"


def _figure(one: VariableReport, figures: bool) -> str:
    if one.drawn is None or not figures:
        return ""
    from ._figures import draw_report
    picture = draw_report(one)
    if picture is None:
        return ""
    drawn = one.drawn
    cells = drawn.error_map.shape
    coarse = "" if cells == drawn.map_shape else " (each point the largest error of its cell)"
    what = "errors as shares of the values" if one.pointwise_bound else "errors"
    caption = (f"Above: original, decoded values and size of errors {drawn.slice_text}{coarse}; "
               f"grey: no value. Below: {what} of all values, decoded less original; dashed: the "
               "bound. Power of original, decoded values and their difference by wave number, of "
               f"{drawn.box_text}.")
    image = base64.b64encode(picture).decode()
    return (f'<figure><img alt="Maps, histogram of errors and spectra of '
            f'{html_text(one.path)}" src="data:image/svg+xml;base64,{image}">'
            f"<figcaption>{html_text(caption)}</figcaption></figure>")


def _attributes(one: VariableReport) -> str:
    if not one.attributes:
        return ""
    rows = "".join(_row((html_text(name), html_text(text[:400]))) for name, text in
                   one.attributes.items())
    return (f"<details><summary>Attributes</summary><table><tbody>{rows}</tbody></table>"
            "</details>")


def _section(at: int, one: VariableReport, figures: bool) -> str:
    remark = f"<p>{html_text(one.remark[:1].upper() + one.remark[1:])}.</p>" if one.remark else ""
    long_name = one.attributes.get("long_name", "")
    about = f"<p>{html_text(long_name)}</p>" if long_name else ""
    return (f'<section id="v{at}"><h2>{html_text(one.path.lstrip("/"))}: {_verdict_html(one)}</h2>'
            f"{about}{_offenders(one)}{remark}{_facts(one)}{_figure(one, figures)}"
            f"{_attributes(one)}</section>")


def write_page(report: Report, names: tuple[str, str], title: Optional[str], figures: bool,
               sizes: Sequence[Optional[int]]) -> None:
    """Write the page; an existing page of that name is replaced once the new one is complete."""
    from ._figures import can_draw
    heading = html_text(title if title is not None else
                     f"Compression of {os.path.basename(names[1])}")
    files = "".join(
        _row((word, f"<code>{html_text(name)}</code>",
              "" if size is None else bytes_text(size)), numbers=(2,))
        for word, name, size in zip(("original", "compressed"), names, sizes))
    drawable = can_draw()
    note = ("" if drawable or not figures or all(one.drawn is None for one in report.values())
            else f"<p>{_NO_FIGURES}</p>")
    sections = "".join(_section(at, one, figures and drawable)
                       for at, one in enumerate(report.values()))
    today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    page = (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{heading}</title><style>{_STYLE}</style></head><body>"
            f"<h1>{heading}</h1>{_banner(report)}{_doubts(report)}"
            f"<table><tbody>{files}</tbody></table>"
            f"{summary_table(list(report.values()))}{note}{sections}"
            f"<p><small>Made by Tailrace {html_text(__version__)}, {today}. Every value of every "
            "variable was compared. Errors are decoded less original values; PSNR is relative to "
            "the range of the original.</small></p></body></html>\n")
    folder = os.path.dirname(os.path.abspath(report.path))
    made = os.path.join(folder, f".report_{os.getpid()}_{secrets.token_hex(4)}.html")
    try:
        with open(made, "x", encoding="utf-8", errors="replace") as file:
            file.write(page)
        os.replace(made, report.path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise
