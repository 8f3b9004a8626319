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
            else:
                work(node.copy)
                node.holds = replays
                clock += 50 if replays == slow_replay + 3 else 0

    def reset(self):
        """The next one is counted anew."""
        global replays
        must(replays == 3 + 5, "%d replays, wanted 3 to warm up and 5" % replays)
        replays = 0


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


class Output:
    """What a launch on a copy allocates and writes: the number of the replay that wrote it last."""

    def __init__(self, copy):
        self.copy, self.holds, self.spoilt = copy, None, []

    def is_floating_point(self):
        """It is."""
        return True

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


@contextlib.contextmanager
def capture(captured, stream, capture_error_mode):
    """What is launched in it is not run."""
    global graph
    must(eager > 0, "captured before anything was launched")
    must(stream and capture_error_mode == "thread_local", "a capture that other threads disturb")
    graph = captured
    yield
    graph = None


def launch(copy):
    """One of a copy."""
    def put():
        global eager
        output = Output(copy)
        if graph:
            graph.nodes.append(("launch", output))
        else:
            eager += 1
            work(copy)
        return (output, [Output(copy)], 7)
    return put


def must(good, text):
    """A check."""
    if not good:
        sys.exit("FAIL: " + text)


cuda = types.SimpleNamespace(
    Event=Event, CUDAGraph=Graph, graph=capture, Stream=lambda: types.SimpleNamespace(synchronize=lambda: None),
    stream=lambda s: contextlib.nullcontext(), synchronize=lambda: None, current_device=lambda: 0, empty_cache=lambda: None,
    get_device_properties=lambda i: types.SimpleNamespace(L2_cache_size=CACHE))
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda, empty=Memory, uint8=None, __version__="0")
from attest_runner_cuda import time_cuda  # pylint: disable=wrong-import-position
from attest_runner import Unsupported  # pylint: disable=wrong-import-position

for size, copies in ((CACHE // 2, 20), (1 << 30, 4), (200 << 20, 10), (0, 256), (1, 256), (1_000_000, 101)):
    made = []

    def make():
        made.append(len(made))
        return launch(made[-1])

    got = time_cuda(make, size, 5)
    must(len(made) == copies == got["copies"] and got["replays"] == 5, "copies of %d bytes: %s, made %d" % (size, got, len(made)))
    for name, want in (("cold", COLD / 1000), ("hot", HOT / 1000), ("copy_rate", RATE)):
        must(abs(got[name] / want - 1) < 1e-6, "%s: %s, wanted %s" % (name, got[name], want))

# What one of the launches left is given back: of the last replay, before which it was spoilt, whichever it was.
taken = []


def take(result):
    """While the graph, whose memory it is in, is there."""
    must(replays == 3 + 5 and result[0].holds == 3 + 5 and result[0].spoilt == [3 + 4] == result[1][0].spoilt, "took %s" % vars(result[0]))
    taken.append(result[0].copy)


for _ in range(100):
    made = []
    got = time_cuda(make, 400 << 20, 5, take)
    must(got["outputs"] == 1 and abs(got["cold"] / COLD * 1000 - 1) < 1e-6, "with outputs: %s" % got)
must(len(taken) == 100 and set(taken) == set(range(5)), "copies taken: %s" % taken)
must("outputs" not in time_cuda(make, CACHE // 2, 5), "says outputs where nothing was taken")

del Event.__init__  # of a PyTorch whose events have no such keyword
try:
    time_cuda(lambda: launch(0), 1, 5)
    sys.exit("FAIL: timed without events in graphs")
except Unsupported as error:
    must("no events inside graphs" in str(error), str(error))
print("times and copies are the device's")
