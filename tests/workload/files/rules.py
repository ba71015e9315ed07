"""Rules for differences between an input and an output: requested, reported by a remark, or
forbidden.

The law: nothing of the input is missing or changed without a message."""

import re

import numpy as np

from .inventory import Numbers

#: Storage properties. `verify` lists such differences and does not fail.
STORAGE = {"filters", "chunk", "layout", "stored", "stored chunks", "allocation", "fill time",
           "edges", "attribute phases", "link phases", "address sizes", "tree sizes",
           "chunk tree size", "space strategy", "space page", "shared messages", "times",
           # A requested order is a separate fact.
           "attribute order kept"}

#: Attributes that HDF5 itself writes for dimension scales.
_OF_SCALES = {"REFERENCE_LIST", "DIMENSION_LIST", "CLASS", "NAME"}

#: Remarks of repack or concat by aspect.
REMARKS = {
    "checksum": "Fletcher32 checksums are not kept",
    "byte order": "numbers are stored in this machine's byte order",
    "named type": "named types become plain types of their datasets",
    "compact": "compact datasets (values in the object header) become contiguous or chunked",
    "anew": "chunks cannot be copied as stored",
    "empty": "datasets without values are stored without chunks",
    "limits": "dimensions with a maximum extent become fixed",
    "allocation": "chunks are not allocated before they are written",
    "edges": "partial edge chunks are filtered like all others",
    "chunk": "chunks are larger than the input's",
    "attribute phases": "limits for attributes in a header",
    "link phases": "limits for links in a header",
    "user block": "user blocks in front of",
    "unwritten": "datasets that were never written are stored",
    "file": "properties of the file are not kept",
}


def is_only_more(aspect, before, after):
    """True if the copy tracks an order that the original does not track, or lists names that the
    original lacks entirely."""
    if aspect in ("attribute order kept", "link order kept"):
        return after > before or only_index(aspect, before, after)
    return aspect in ("attribute order", "link order") and not before


def of_scales(aspect, before, after):
    """True for attributes that HDF5 itself rewrites for dimension scales."""
    if aspect not in ("attribute REFERENCE_LIST", "attribute DIMENSION_LIST"):
        return False
    def values(attribute):
        return set(map(repr, attribute[2])) if attribute else set()
    return values(before) <= values(after)


def same_name(path, aspect):
    """True if the name is the same in both character sets."""
    return aspect == "link name" and path.rpartition("/")[2].isascii()


def only_index(aspect, before, after):
    """True if both track an order; whether it is indexed only affects speed."""
    return aspect in ("attribute order kept", "link order kept") and bool(before) == bool(after)


def same_order(aspect, before, after):
    """True if the names common to both are in the same order. A missing name is a separate
    difference. Attributes that HDF5 writes for dimension scales may be anywhere, and alone have no
    order to keep."""
    if aspect not in ("attribute order", "link order") or before is None:
        return False
    before = [name for name in before if name not in _OF_SCALES]
    if after is None:
        return not before
    both = set(before) & set(after)
    return [name for name in before if name in both] == [name for name in after if name in both]


def is_storage(path, aspect, before, after):
    """True for a difference that must not make `verify` fail."""
    return (aspect in STORAGE or same_name(path, aspect) or is_only_more(aspect, before, after)
            or of_scales(aspect, before, after) or same_order(aspect, before, after)
            or aspect.startswith("attribute tailrace_"))


def without_byte_order(facts):
    return repr(facts).replace("'be'", "'le'")


def within(before, after, bound):
    """True if values are within the bound of (mode, number), and special values are equal."""
    if not (isinstance(before, Numbers) and isinstance(after, Numbers)
            and before.array.dtype == after.array.dtype and before.array.dtype.kind == "f"
            and before.array.size == after.array.size):
        return False
    a, b = (each.array.astype(np.longdouble) for each in (before, after))
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not finite.any():
        return not finite.any()
    mode, number = bound
    allowed = number if mode == "abs" else number * (a[finite].max() - a[finite].min())
    return bool(np.abs(a[finite] - b[finite]).max() <= allowed)


class Said:
    """The remarks of a command, without line breaks. aliases: all paths of an object, by each
    path."""

    def __init__(self, text):
        self.text = re.sub(r"\s+", " ", text)
        self.aliases = {}

    def names(self, key, path=""):
        """True if the remark of that key names the object by any of its paths."""
        words = REMARKS[key]
        if words not in self.text:
            return False
        sentence = self.text[self.text.index(words):]
        # `_in` strips slashes, so the root and the file itself are found in every sentence.
        return self._in(sentence, path) or bool(re.search(r"and \d+ more|\d+ others", sentence))

    def mentions(self, path):
        """True if any remark names the object."""
        return self._in(self.text, path)

    def _in(self, text, path):
        return any(re.sub(r"\s+", " ", name).lstrip("/") in text for name in self._all(path))

    def _all(self, path):
        """All paths of an object, including paths through other names of its groups."""
        names = set(self.aliases.get(path, [path]))
        group, _, name = path.rpartition("/")
        if group:
            names |= {f"{other}/{name}" for other in self._all(group)}
        return names


class Asked:
    """Differences that a request causes."""

    def __init__(self, bound=None, chunks=False, contiguous=False, as_stored=False, filters=True,
                 rows=False):
        self.bound = bound
        self.chunks = chunks  # Other chunk shapes.
        self.rows = rows  # More rows, and an unlimited number of them.
        self.contiguous = contiguous
        self.as_stored = as_stored
        self.filters = filters and not as_stored


def excuse(difference, before, after, asked, said):
    """The reason that permits a difference; an empty text forbids it.

    before, after: all facts of both files.
    """
    path, aspect, a, b = difference
    facts, copied = before.get(path, {}), after.get(path, {})
    if aspect.startswith("attribute tailrace_") or is_only_more(aspect, a, b):
        return "more"
    if of_scales(aspect, a, b) or same_order(aspect, a, b) or same_name(path, aspect):
        return "same"
    if aspect == "attribute REFERENCE_LIST" and "cannot be resolved" in said.text:
        return "remark"  # The remark names the dataset at the other end of the scale's attachment.
    if aspect == "times":
        return "documented" if a else ""
    if aspect == "values" and asked.bound and within(a, b, asked.bound):
        return "within the bound"
    if aspect in ("attribute phases", "link phases"):
        return "default" if a == [8, 6] else "remark" if said.names(aspect, path) else ""
    if path == "/" and aspect in STORAGE - {"attribute order kept"}:
        return "remark" if said.names("file") else ""
    if aspect == "object" or aspect == "link":
        return "remark" if said.mentions(path) else ""
    if aspect == "type" and without_byte_order(a) == without_byte_order(b) or (
            aspect == "type" and "named" in repr(a)):
        key = "byte order" if repr(a).split("named")[0] != repr(b).split("named")[0] else (
            "named type")
        return "remark" if said.names(key, path) else ""
    if asked.rows and a != b and _without_extents(a) == _without_extents(b):
        return "asked"
    return _of_storage(aspect, a, b, facts, copied, asked, said, path)


def _without_extents(value):
    """Region references as text, without the extents of their datasets, which may have grown."""
    return re.sub(r"\(\d[^)]*\) (?=points|blocks)", "", repr(value))


def _of_storage(aspect, a, b, facts, copied, asked, said, path):
    was, now = facts.get("layout"), copied.get("layout")
    if aspect == "layout":
        if was == "contiguous" and now == "chunked" and not asked.as_stored:
            return "compressed"
        if was == "compact":
            return "remark" if said.names("compact", path) else ""
        if was == "chunked" and 0 in facts["shape"] and said.names("empty", path):
            return "remark"
        if now == "contiguous" and (asked.contiguous or "external" in facts):
            return "asked" if asked.contiguous else "remark" if said.mentions(path) else ""
        return ""
    if aspect == "filters":
        if a and b and any(each[0] == 3 for each in a) and not any(each[0] == 3 for each in b):
            return "remark" if said.names("checksum", path) else ""
        anew = said.names("anew", path) if asked.as_stored else asked.filters
        return "asked" if anew or was != now else ""
    if was != now and aspect in ("chunk", "stored", "stored chunks", "allocation", "edges"):
        return "layout"
    if aspect == "chunk":
        return "asked" if asked.chunks else "remark" if said.mentions(path) else ""
    if aspect == "stored" or aspect == "allocation" and now == "contiguous" and said.names(
            "unwritten", path):
        return "remark" if said.names("unwritten", path) else ""
    if aspect == "stored chunks" and asked.rows:
        return "asked" if bool(a) == bool(b) else ""
    if aspect == "stored chunks":
        return "chunks" if copied.get("chunk") != facts.get("chunk") and bool(a) == bool(b) else ""
    if aspect == "allocation":
        # The time at which existing space was allocated is unknown.
        if now == "contiguous":
            return "allocated" if facts.get("stored") or not copied.get("stored") else ""
        return "remark" if said.names("allocation", path) else ""
    if aspect == "edges":
        return "remark" if said.names("edges", path) else ""
    if aspect == "limits" and asked.rows and b[0] == 2**64 - 1 and a[1:] == b[1:]:
        return "asked"
    if aspect == "user block":
        return "remark" if said.names(aspect) else ""
    if aspect == "limits":
        return "remark" if said.names("limits", path) else ""
    if aspect.startswith("attribute ") or aspect in ("values", "fill"):
        return "remark" if said.mentions(path) else ""
    return ""


def aliases_of(facts):
    """All paths of each object, by each path."""
    groups = {}
    for path, its in facts.items():
        link = its.get("link", "")
        groups.setdefault(link[8:] if link.startswith("same as ") else path, []).append(path)
    return {path: group for group in groups.values() for path in group}
