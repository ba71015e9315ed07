"""Reader of the recorder's log, and states in which a kill or a power loss can leave the files.

The model of a disk guarantees what POSIX does, and nothing more:
- A write or a change of length is durable when a later fsync or fdatasync of the file has returned.
  Until then it is present, absent, or torn at the borders of sectors, independent of other calls.
- A creation, change or removal of a name is durable when its folder has been synced. Until then
  each call has or has not happened, as a whole. It may be durable before the file's bytes are.
- Nothing else orders calls.
A kill leaves all completed calls, and the pages that the call in progress has already written.
"""

import hashlib
import itertools
import os
import struct

RECORD = struct.Struct("<BBHiQQQQQ")
CLASSES = ("io", "thread", "map", "memory", "note")
SECTORS = (512, 4096)


class Call:
    """One recorded call."""

    __slots__ = ("kind", "group", "rank", "error", "pid", "inode", "offset", "site", "data")

    def __init__(self, kind, group, rank, error, pid, inode, offset, site, data):
        self.kind, self.group, self.rank, self.error = chr(kind), CLASSES[group], rank, error
        self.pid, self.inode, self.offset, self.data = pid, inode, offset, data
        self.site = site    # place in the programs that makes the call; 0 without CAMPAIGN_SITES

    def names(self):
        return [name.decode() for name in self.data.split(b"\0")[:-1]]


def read_log(path):
    content = path.read_bytes()
    calls, at = [], 0
    while at < len(content):
        *head, n_bytes = RECORD.unpack_from(content, at)
        at += RECORD.size
        calls.append(Call(*head, content[at:at + n_bytes]))
        at += n_bytes
    return calls


def change(content, call, sectors=None):
    """Apply a call to a bytearray: all of it, or of a write `sectors`: (size, their numbers)."""
    if call.kind == "w":
        end = call.offset + len(call.data)
        if len(content) < end and call.data:
            content.extend(bytes(end - len(content)))
        if sectors is None:
            content[call.offset:end] = call.data
            return
        size, arrived = sectors
        for sector in arrived:
            first, last = max(call.offset, sector * size), min(end, (sector + 1) * size)
            content[first:last] = call.data[first - call.offset:last - call.offset]
    elif call.kind == "e" and len(content) < call.offset:
        content.extend(bytes(call.offset - len(content)))
    elif call.kind == "t":
        del content[call.offset:]
        content.extend(bytes(call.offset - len(content)))


def rename(names, call, node):
    """Apply a call to the names of a folder."""
    first, *more = call.names()
    if call.kind == "c":
        names[first] = node
    elif call.kind == "u":
        names.pop(first, None)
    elif call.kind == "l":
        names[more[0]] = node
    elif call.kind == "r":
        names.pop(first, None)
        if more[0]:
            names[more[0]] = node


class Disk:
    """Replays calls; separates durable effects from pending ones."""

    def __init__(self, start, by_process=False):
        """Begin with the durable files `start`: {name: (inode, bytes)}.

        `by_process`: a sync makes only the writes of the calling process durable, like on file
        systems whose clients have caches of their own."""
        self.by_process = by_process
        self.nodes = {}     # node: [durable bytes, calls since]
        self.node_of = {}   # inode: node; each creation makes a new node
        self.names = {}     # durable
        self.moves = []     # (call, node) of the name changes since the folder was synced
        self.committed = 0
        for name, (inode, content) in start.items():
            self.names[name] = self._new_node(inode, content)

    def _new_node(self, inode, content=b""):
        self.node_of[inode] = len(self.nodes)
        self.nodes[len(self.nodes)] = [content, []]
        return self.node_of[inode]

    def is_sync(self, call):
        return not call.error and call.kind in "sd"

    def take(self, call):
        if call.kind == "m":
            self.committed = max(self.committed, call.offset)
        if call.error or call.group != "io":
            return
        assert call.kind != "x", "a shared mapping: its writes cannot be recorded"
        if call.kind == "c":
            self._new_node(call.inode)
        if call.kind in "crlu":
            self.moves.append((call, self.node_of.get(call.inode)))
        elif call.kind == "d":
            folder = call.names()[0]
            inside = [m for m in self.moves
                      if any(os.path.dirname(name) == folder for name in m[0].names() if name)]
            for move in inside:
                rename(self.names, *move)
            self.moves = [m for m in self.moves if m not in inside]
        elif call.kind in "wte":
            if call.kind != "w" or call.data:
                self.nodes[self.node_of[call.inode]][1].append(call)
        elif call.kind == "s" and call.inode in self.node_of:
            node = self.nodes[self.node_of[call.inode]]
            mine = [c for c in node[1] if not self.by_process or c.pid == call.pid]
            content = bytearray(node[0])
            for done in mine:
                change(content, done)
            node[0], node[1] = bytes(content), [c for c in node[1] if c not in mine]

    def pending(self):
        """Return every call that is not durable: (None, move) or (node, call)."""
        found = [(None, move) for move in self.moves]
        return found + [(n, call) for n, node in self.nodes.items() for call in node[1]]

    def state(self, pending, choices):
        """Return the files by name if the pending calls arrive according to `choices`.

        A choice is False, True, or the sectors of a write that arrive."""
        names = dict(self.names)
        changed = {}
        for (node, what), choice in zip(pending, choices):
            if choice is False:
                continue
            if node is None:
                rename(names, *what)
            else:
                content = changed.setdefault(node, bytearray(self.nodes[node][0]))
                change(content, what, None if choice is True else choice)
        return {name: bytes(changed.get(node, self.nodes[node][0]))
                for name, node in names.items() if node is not None}


def digest(state):
    sums = [name.encode() + hashlib.blake2b(state[name], digest_size=16).digest()
            for name in sorted(state)]
    return hashlib.blake2b(b"".join(sums), digest_size=16).digest()


def whole_choices(n, generator, limit):
    """Yield choices of n calls that arrive: every subset if they are few, else a selection.

    The selection has typical subsets, such as all but one, and random ones."""
    if 2 ** n <= limit:
        yield from itertools.product((False, True), repeat=n)
        return
    telling = [[True] * n, [False] * n]
    for i in range(n):
        telling.append([k == i for k in range(n)])
        telling.append([k != i for k in range(n)])
        telling.append([k < i for k in range(n)])
    yield from generator.sample(telling, min(len(telling), limit * 3 // 4))
    for _ in range(limit // 4):
        odds = generator.random()
        yield [generator.random() < odds for _ in range(n)]


def torn_choices(pending, generator, limit):
    """Yield choices in which at least one write that crosses a border of sectors is torn."""
    borders = []
    for i, (node, call) in enumerate(pending):
        if node is None or call.kind != "w":
            continue
        end = call.offset + len(call.data)
        borders += [(i, size, call.offset // size, (end - 1) // size) for size in SECTORS
                    if call.offset // size < (end - 1) // size]
    for _ in range(limit if borders else 0):
        choices = [generator.random() < generator.choice((0.5, 1.0)) for _ in pending]
        for i, size, first, last in generator.sample(borders, min(len(borders),
                                                                  generator.choice((1, 1, 3)))):
            cut = generator.randint(first, last)
            some = [s for s in range(first, last + 1) if generator.random() < 0.5]
            choices[i] = (size, generator.choice((range(first, cut), range(cut, last + 1), some)))
        yield choices


def power_states(start, calls, generator, limit, by_process=False):
    """Yield (class, committed, state) for power losses.

    The class is "power" or "torn", or "clients" with `by_process`. Each state appears once for each
    number of committed steps."""
    disk = Disk(start, by_process)
    seen = set()
    for call in [*calls, None]:
        if call is None or disk.is_sync(call):
            pending = disk.pending()
            kinds = [("clients" if by_process else "power",
                      whole_choices(len(pending), generator, limit)),
                     ("torn", torn_choices(pending, generator, 0 if by_process else limit))]
            for kind, many in kinds:
                for choices in many:
                    state = disk.state(pending, choices)
                    key = (disk.committed, digest(state))
                    if key not in seen:
                        seen.add(key)
                        yield kind, disk.committed, state
        if call is not None:
            disk.take(call)


def kill_states(start, calls, generator):
    """Yield (class, committed, state) for kills.

    The class is "kill" after each call, and "cut" between two pages of a write, where Linux checks
    for a pending kill."""
    disk = Disk(start)
    for call in calls:
        pending = disk.pending()
        if call.kind == "w" and not call.error and call.data:
            first, last = call.offset // 4096, (call.offset + len(call.data) - 1) // 4096
            for cut in sorted(generator.sample(range(first + 1, last + 1), min(2, last - first))):
                here = (disk.node_of[call.inode], call)
                yield "cut", disk.committed, disk.state(
                    [*pending, here], [True] * len(pending) + [(4096, range(first, cut))])
        disk.take(call)
        if not call.error and (call.kind == "m" or call.kind in "wtecrlu"):
            yield "kill", disk.committed, disk.state(disk.pending(), [True] * len(disk.pending()))


def final_state(start, calls):
    """Return the files after all calls; other files on disk mean that a call was not recorded."""
    disk = Disk(start)
    for call in calls:
        disk.take(call)
    return disk.state(disk.pending(), [True] * len(disk.pending()))
