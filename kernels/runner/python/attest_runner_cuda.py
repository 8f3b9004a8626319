"""Times launches of PyTorch on a GPU as attest-cuda times its own (kernels/runner/cuda_graph.c), for functions of attest_runner.py
that take `bench`. SPDX-License-Identifier: Apache-2.0

    def mine(job, *, scale, bench=None):
        ...
        if bench:
            return time_cuda(lambda: functools.partial(launch, q.clone(), k.clone(), v.clone()), bytes_of(q, k, v), bench, torch_of(o).copy_)

Needs PyTorch with events inside graphs: torch.cuda.Event(external=True).
"""
import random

import torch

from attest_runner import Unsupported

__all__ = ["time_cuda", "bytes_of"]
FEWEST_COPIES, MAX_COPIES, LAUNCHES, WARM_UPS = 4, 256, 20, 3
BYTES_OF_LAUNCHES = 2 << 30  # the most for copies beyond those that the cache asks for


def bytes_of(*tensors):
    """Bytes of the elements of all of them."""
    return sum(t.numel() * t.element_size() for t in tensors)


def _event():
    """An event that a graph records at its place, as often as it is replayed."""
    try:
        return torch.cuda.Event(enable_timing=True, external=True)
    except TypeError as error:
        raise Unsupported("PyTorch %s has no events inside graphs" % torch.__version__) from error


def _spoil(result):
    """Makes every floating-point tensor in what a launch returned a NaN."""
    if isinstance(result, (list, tuple)):
        for part in result:
            _spoil(part)
    elif hasattr(result, "is_floating_point") and result.is_floating_point():
        result.fill_(float("nan"))


def _median(launches, keep, replays, stream, take=None):
    """Seconds a launch, median over replays of one graph of all launches between two events. keep: every launch has outputs of
    its own in the graph, as rotating copies have; else the next launch gets the memory of the last. take, with keep: is given what
    one of the launches, which is drawn, leaves in the last replay of what was NaN before it."""
    begin, end = _event(), _event()
    graph, outputs = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        begin.record()
        for launch in launches:
            result = launch()
            if keep:
                outputs.append(result)
            del result
        end.record()
    milliseconds = []
    drawn = random.SystemRandom().choice(outputs) if take else None
    for i in range(-WARM_UPS, replays):
        with torch.cuda.stream(stream):
            if i == replays - 1:
                _spoil(drawn)
            graph.replay()
        stream.synchronize()
        if i >= 0:
            milliseconds.append(begin.elapsed_time(end))
    if take:
        take(drawn)
        torch.cuda.synchronize()
    graph.reset()
    return sorted(milliseconds)[replays // 2] / 1000 / len(launches)


def _copy_rate(stream):
    """Bytes a second that a large copy within the device reads and writes: the best of ten."""
    size = 1 << 30
    memory, best = torch.empty(2 * size, dtype=torch.uint8, device="cuda"), 0.0
    for i in range(-WARM_UPS, 10):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(stream):
            begin.record()
            memory[:size].copy_(memory[size:])
            end.record()
        stream.synchronize()
        if i >= 0:
            best = max(best, 2 * size / (begin.elapsed_time(end) / 1000))
    return best


def time_cuda(make, bytes_of_inputs, replays, take=None):
    """What a function that takes `bench` returns. make() -> a launch: a callable without arguments, on inputs of its own, whose
    result is what it allocates; it is captured in a CUDA graph, so it must not wait for the device. bytes_of_inputs: of one copy;
    there are as many copies as outgrow the second-level cache twice, 4 to 256, and where 2 GiB hold them 20 or more, so that many
    launches share what the events and the start of a graph take, about a microsecond. cold: seconds a launch with the
    copies in turn, hot: with one of them; medians over replays. take(result) writes what a launch returned to the job's outputs: it gets that of a timed
    launch, which attest then judges; without it, the times are of launches that nobody judged. Everything else runs on a stream beside
    the default one."""
    stream = torch.cuda.Stream()
    cache = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
    each = max(bytes_of_inputs, 1)
    copies = min(max(2 * cache // each + 1, min(BYTES_OF_LAUNCHES // each, LAUNCHES), FEWEST_COPIES), MAX_COPIES)
    launches = [make() for _ in range(copies)]
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):  # libraries choose and build what they launch here, which no capture allows
        for _ in range(WARM_UPS):
            launches[0]()
    stream.synchronize()
    cold = _median(launches, True, replays, stream, take)
    hot = _median(launches[:1] * LAUNCHES, False, replays, stream)
    del launches
    torch.cuda.empty_cache()  # the next runner's turn: it wants the memory
    rate = _copy_rate(stream)
    torch.cuda.empty_cache()
    times = {"replays": replays, "copies": copies, "cold": cold, "hot": hot, "copy_rate": rate}
    return dict(times, outputs=1) if take else times
