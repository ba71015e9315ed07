"""Parsing of the sizes in the generators' options."""


def bytes_of(text):
    """Bytes of "400MB", "1.5GiB" or "4096"."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("GB", 1e9), ("MB", 1e6),
                         ("KB", 1e3), ("B", 1), ("", 1)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise ValueError(text)
