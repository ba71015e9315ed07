"""The result of one program."""

import re
from dataclasses import dataclass


@dataclass
class Verdict:
    """kind: ok, invalid (the program), or of a failure: error, crash, wrong, audit."""

    kind: str = "ok"
    reader: str = ""
    text: str = ""
    at: int = -1  # Index of the operation.
    fault: str = ""  # Kind of the fault that occurred, if any.

    @property
    def failed(self):
        return self.kind not in ("ok", "invalid")

    def same_as(self, other):
        """True if both appear to show the same fault."""
        return (self.kind, self.reader, self._message()) == (other.kind, other.reader,
                                                             other._message())

    def _message(self):
        """An error's text without names and numbers."""
        first = self.text.partition("\n")[0] if self.kind == "error" else ""
        return re.sub(r'"[^"]*"|/\S*|[\d.]+', "", first)
