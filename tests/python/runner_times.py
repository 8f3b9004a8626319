"""time_cuda() of attest_runner_cuda.py on a device that is made up: which launches are captured and replayed, and that the numbers
are those of the device. On a GPU, `attest bench --peer` shows the same.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import sys
import types

CACHE, COLD, HOT, RATE = 50_000_000, 3.0, 2.0, 4e12  # bytes, ms a launch, bytes a second
clock, replays, slow_replay = 0.0, 0, 1  # ms; of the graph in hand; the one that other work meets
graph, resident = None, []  # in capture; copies that were touched last
eager = 0  # launches outside of a graph
made = []  # copies of inputs


def work(copy):
    """A launch that reads a copy of half the cache's size: it is found there when it was one of the last two."""
    global clock, resident
    clock += HOT if copy in resident else COLD
    resident = ([copy] + [c for c in resident if c != copy])[:2]


class Graph:
    """Nodes in the order of capture."""

    def __init__(self):
        self.nodes = []

    def replay(self):
        """All of them; one replay in its first ones is slow."""
        global clock, replays
        replays += 1
        for kind, node in self.nodes:
            if kind == "event":
                node.time = clock
            elif kind == "fill":
                node.holds = "values"
            else:
                node()
                clock += 50 if replays == slow_replay + 3 else 0

    def reset(self):
        """The next one is counted anew."""
        global replays
        filled = any(kind == "fill" for kind, _ in self.nodes)
        must(replays == (1 if filled else 3 + 5), "%d replays, wanted 3 to warm up and 5, or one" % replays)
        must(filled or events_of(self) == 2, "timed without events")
        replays = 0


def events_of(captured):
    """How many it records."""
    return sum(kind == "event" for kind, _ in captured.nodes)


class Event:
    """A place in time; in a graph, if it is external."""

    def __init__(self, enable_timing, external=False):
        self.external, self.time = external and enable_timing, None

    def record(self):
        """Now, or when the graph comes to it."""
        must(graph is None or self.external, "an event that the graph would not record")
        if graph:
            graph.nodes.append(("event", self))
        self.time = clock

    def elapsed_time(self, end):
        """Milliseconds."""
        return end.time - self.time


class Tensor:
    """An input of a launch, or what it allocates and writes: values, or NaN; which copy of the inputs, and which replay wrote it last."""

    def __init__(self, copy=None, size=0, holds=None):
        self.copy, self.size, self.holds, self.written, self.spoilt, self.at = copy, size, holds, None, [], None

    def is_floating_point(self):
        """It is."""
        return True

    def numel(self):
        """As many as there are bytes."""
        return self.size

    def element_size(self):
        """One."""
        return 1

    def clone(self):
        """Another copy of the inputs, or what a launch left."""
        other = Tensor(len(made), self.size, self.holds)
        if self.copy is None:
            made.append(other)
        else:
            other.__dict__.update(vars(self), spoilt=list(self.spoilt), at=replays)
        return other

    def copy_(self, other):
        """From the inputs as they came, in a graph."""
        must(graph is not None and other.copy is None, "inputs are filled outside of a graph")
        graph.nodes.append(("fill", self))

    def float(self):
        """It is one."""
        return self

    def fill_(self, value):
        """With NaN, and that before the last replay."""
        must(value != value and graph is None, "filled with %s" % value)
        self.holds = "NaN"
        self.spoilt.append(replays)


class Memory:
    """What a large copy moves."""

    def __init__(self, size, **_):
        self.size = size

    def __getitem__(self, part):
        return Memory(len(range(*part.indices(self.size))))

    def copy_(self, other):
        """Reads and writes all of it."""
        global clock
        must(self.size == other.size == 1 << 30, "a copy of %d bytes" % self.size)
        clock += 2 * self.size / RATE * 1000

    def numel(self):
        """Bytes."""
        return self.size

    def max(self):
        """Reads all of it, and nothing else is left in the cache."""
        global scrubbed
        must(self.size >= 2 * CACHE and graph is None, "a cache cleared with %d bytes" % self.size)
        resident.clear()
        scrubbed += 1


@contextlib.contextmanager
def capture(captured, stream, capture_error_mode):
    """What is launched in it is not run."""
    global graph
    must(eager > 0, "captured before anything was launched")
    must(stream and capture_error_mode == "thread_local", "a capture that other threads disturb")
    graph = captured
    yield
    graph = None


def launch(x):
    """One on a copy."""
    output = Tensor(x.copy)

    def put():
        work(x.copy)
        output.holds, output.written = x.holds, replays
    run(put)
    return (output, [Tensor(x.copy)], 7)


def run(node):
    """Now, or when a graph comes to it."""
    global eager
    if graph:
        graph.nodes.append(("launch", node))
    else:
        eager += 1
        node()


def must(good, text):
    """A check."""
    if not good:
        sys.exit("FAIL: " + text)


cuda = types.SimpleNamespace(
    Event=Event, CUDAGraph=Graph, graph=capture, Stream=lambda: types.SimpleNamespace(synchronize=lambda: None),
    stream=lambda s: contextlib.nullcontext(), synchronize=lambda: None, current_device=lambda: 0, empty_cache=lambda: None,
    get_device_properties=lambda i: types.SimpleNamespace(L2_cache_size=CACHE))
sys.modules["torch"] = types.SimpleNamespace(
    cuda=cuda, empty=Memory, uint8=None, __version__="0", Tensor=Tensor, isnan=lambda t: types.SimpleNamespace(sum=lambda: t.holds == "NaN"))
from attest_runner_cuda import time_cuda  # pylint: disable=wrong-import-position
from attest_runner import Unsupported  # pylint: disable=wrong-import-position

taken, scrubbed = [], 0


def timed(size, function=launch):
    """What time_cuda() returns for inputs of a size, and what was taken then."""
    made.clear()
    taken.clear()
    got = time_cuda(function, (Tensor(size=size, holds="values"),), 5, taken.append)
    must(len(taken) == 1 and got["outputs"] == 1, "taken: %s" % taken)
    return got, taken[0][0]


for size, copies in ((CACHE // 2, 20), (1 << 30, 4), (200 << 20, 10), (0, 256), (1, 256), (1_000_000, 101)):
    scrubbed = 0
    got, _ = timed(size)
    must(len(made) == copies == got["copies"] and got["replays"] == 5, "copies of %d bytes: %s, made %d" % (size, got, len(made)))
    must(scrubbed == (3 + 5 if size * copies >= 2 * CACHE else 0), "%d bytes: cleared %d times" % (size, scrubbed))
    for name, want in (("cold", COLD / 1000), ("hot", HOT / 1000), ("copy_rate", RATE)):
        must(abs(got[name] / want - 1) < 1e-6, "%s: %s, wanted %s" % (name, got[name], want))

# What one of the launches left is given back: of the last replay, before which it was spoilt, whichever it was.
seen = set()
for _ in range(100):
    got, left = timed(400 << 20)
    must(left.holds == "values" and left.written == left.at == 3 + 5 and left.spoilt == [3 + 4], "took %s" % vars(left))
    must(abs(got["cold"] / COLD * 1000 - 1) < 1e-6, "with outputs: %s" % got)
    seen.add(left.copy)
must(seen == set(range(5)), "copies taken: %s" % seen)


# A launch that computes those that follow, too: they have no inputs yet where each gets them in its turn.
def for_all(x):
    """The first of a graph does the work of all copies, of which it should know nothing."""
    if graph and not any(kind == "launch" for kind, _ in graph.nodes):
        ahead.update({y.copy: Tensor(y.copy) for y in made})

        def put():
            for y in made:
                ahead[y.copy].holds, ahead[y.copy].written = y.holds, replays
        run(put)
        return ahead[x.copy]
    return ahead[x.copy] if graph else launch(x)[0]


for _ in range(20):
    ahead = {}
    made.clear()
    taken.clear()
    time_cuda(for_all, (Tensor(size=400 << 20, holds="values"),), 5, taken.append)
    must(taken[0].holds == "NaN", "a launch for all copies: %s" % vars(taken[0]))


class Lazy(Tensor):
    """Computes when it is looked at."""


for refused, text in ((lambda: time_cuda(lambda x: Lazy(), (Tensor(),), 5, taken.append), "returned a Lazy"),
                      (lambda: time_cuda(launch, 17, 5, taken.append), "inputs is a int")):
    try:
        refused()
        sys.exit("FAIL: no TypeError, " + text)
    except TypeError as error:
        must(text in str(error), str(error))
graph = None
del Event.__init__  # of a PyTorch whose events have no such keyword
try:
    timed(1)
    sys.exit("FAIL: timed without events in graphs")
except Unsupported as error:
    must("no events inside graphs" in str(error), str(error))
print("times and copies are the device's")
