"""Times launches of PyTorch on a GPU as attest-cuda times its own (kernels/runner/cuda_graph.c), for functions of attest_runner.py
that take `bench`. SPDX-License-Identifier: Apache-2.0

    def mine(job, *, scale, bench=None):
        ...
        if bench:
            return time_cuda(launch, (q, k, v), bench, torch_of(o).copy_)  # o = launch(q, k, v)

Needs PyTorch with events inside graphs: torch.cuda.Event(external=True).
"""
import ctypes
import functools
import random

import torch

from attest_runner import Unsupported

__all__ = ["time_cuda", "bytes_of"]
FEWEST_COPIES, MAX_COPIES, LAUNCHES, WARM_UPS = 4, 256, 20, 3
BYTES_OF_LAUNCHES = 2 << 30  # the most for copies beyond those that the cache asks for
PERSISTING_L2_CACHE_SIZE = 6  # of CUlimit
DRAW = random.SystemRandom()


def bytes_of(*tensors):
    """Bytes of the elements of all of them."""
    return sum(t.numel() * t.element_size() for t in tensors)


def _event():
    """An event that a graph records at its place, as often as it is replayed."""
    try:
        return torch.cuda.Event(enable_timing=True, external=True)
    except TypeError as error:
        raise Unsupported("PyTorch %s has no events inside graphs" % torch.__version__) from error


def _tensors(result):
    """The tensors in what a launch returned. A tensor of another class may compute when it is looked at, when nobody takes the time."""
    if isinstance(result, (list, tuple)):
        return [t for part in result for t in _tensors(part)]
    if type(result) is torch.Tensor:  # pylint: disable=unidiomatic-typecheck
        return [result]
    if result is None or isinstance(result, (bool, int, float)):
        return []
    raise TypeError("a launch returned a %s: wanted plain tensors, which hold what it has computed" % type(result).__name__)


def _floats(tensors):
    return [t for t in tensors if t.is_floating_point()]


def _fill_with_nan(tensors):
    for t in _floats(tensors):
        t.fill_(float("nan"))


def _copied(result):
    """What a launch returned, in memory that no graph writes to."""
    if isinstance(result, (list, tuple)):
        return [_copied(part) for part in result]
    return result.clone() if isinstance(result, torch.Tensor) else result


def _nans(result):
    """How many numbers in it are none."""
    return sum(int(torch.isnan(t.float()).sum()) for t in _floats(_tensors(result)))


@functools.lru_cache(None)
def _driver():
    """CUDA's, where it is that."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def _set_nothing_aside():
    """No part of the second-level cache is for lines that somebody wants to persist there."""
    if _driver():
        _driver().cuCtxSetLimit(PERSISTING_L2_CACHE_SIZE, ctypes.c_size_t(0))


def _forget_persisting():
    """Lines of that cache that were to persist are as all others."""
    if _driver():
        _driver().cuCtxResetPersistingL2Cache()


def _replayed(launch, copies, replays, stream, before, keeps=True):
    """Seconds a launch, median over replays of one graph of all launches between two events, and what one of them, which is drawn,
    left in the last replay, where NaN had been. before(): on the stream, before each replay. keeps: every launch has outputs of its own
    in the graph, as rotating copies have; else the next launch gets the memory of the last, and nothing is brought back."""
    begin, end = _event(), _event()
    graph, outputs, drawn, left = torch.cuda.CUDAGraph(), [], None, None
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        begin.record()
        for inputs in copies:
            result = launch(*inputs)
            _tensors(result)
            if keeps:
                outputs.append(result)
            del result
        end.record()
    _set_nothing_aside()  # after the launch's own code has run
    milliseconds = []
    if keeps:
        drawn = DRAW.choice(outputs)
    for i in range(-WARM_UPS, replays):
        with torch.cuda.stream(stream):
            if keeps and i == replays - 1:
                _fill_with_nan(_tensors(drawn))
            before()
            graph.replay()
        torch.cuda.synchronize()  # of the device: what went to another stream is no longer under way
        if i >= 0:
            milliseconds.append(begin.elapsed_time(end))
    if keeps:
        left = _copied(drawn)
        torch.cuda.synchronize()
    graph.reset()
    return sorted(milliseconds)[replays // 2] / 1000 / len(copies), left


def _one_by_one(launch, copies, inputs, stream):
    """What that launch left which has the most NaNs, of the same launches in the same order, in a graph in which the inputs of each are
    NaN until the launch before has ended: what one computes for those that follow has nothing to be computed of. Untimed."""
    graph, outputs = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        for copy in copies:
            for mine, source in zip(copy, inputs):
                mine.copy_(source)
            outputs.append(launch(*copy))
    with torch.cuda.stream(stream):
        for output, copy in zip(outputs, copies):
            _fill_with_nan(_tensors(output))
            _fill_with_nan(copy)
        graph.replay()
    torch.cuda.synchronize()
    left = _copied(max(outputs, key=_nans))
    torch.cuda.synchronize()
    graph.reset()
    return left


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


def time_cuda(launch, inputs, replays, take):
    """What a function that takes `bench` returns. launch(*inputs) returns what it allocates: tensors, or tuples of them; it is captured
    in a CUDA graph, so it must not wait for the device. inputs: tensors, of which there are as many copies as outgrow the second-level
    cache twice, 4 to 256, and where 2 GiB hold them 20 or more, so that many launches share what the events and the start of a graph take,
    about a microsecond. cold: seconds a launch with the copies in turn, hot: with one of them; medians over replays. take(result) writes
    what a launch returned to the job's outputs: it gets that of a timed launch, which attest then judges, or of one in another graph,
    untimed, in which each launch got its inputs when the one before had ended, where that has more NaNs than the timed one (whole numbers cannot be marked). Which
    copy comes when, and which of both graphs first, is drawn. Everything but the copies runs on a stream beside the default one."""
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("time_cuda(launch, inputs, replays, take): inputs is a %s, wanted a tuple of tensors" % type(inputs).__name__)
    stream = torch.cuda.Stream()
    cache = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
    each = max(bytes_of(*inputs), 1)
    n = min(max(2 * cache // each + 1, min(BYTES_OF_LAUNCHES // each, LAUNCHES), FEWEST_COPIES), MAX_COPIES)
    copies = [[x.clone() for x in inputs] for _ in range(n)]
    DRAW.shuffle(copies)
    # Copies that outgrow the cache find none of themselves in it; what was kept there by other means than being used last, they shall not.
    scrub = torch.empty(4 * cache if n * each >= 2 * cache else 0, dtype=torch.uint8, device="cuda")

    def clear():
        _forget_persisting()
        if scrub.numel():
            scrub.max()  # is read, and leaves no lines that are yet to be written

    torch.cuda.synchronize()
    with torch.cuda.stream(stream):  # libraries choose and build what they launch here, which no capture allows
        for _ in range(WARM_UPS):
            _tensors(launch(*copies[0]))
    stream.synchronize()
    single = None if DRAW.random() < 0.5 else _one_by_one(launch, copies, inputs, stream)
    cold, left = _replayed(launch, copies, replays, stream, clear)
    hot, _ = _replayed(launch, copies[:1] * LAUNCHES, replays, stream, _forget_persisting, keeps=False)
    if single is None:
        single = _one_by_one(launch, copies, inputs, stream)
    take(single if _nans(single) > _nans(left) else left)
    torch.cuda.synchronize()
    del copies, scrub, left, single
    torch.cuda.empty_cache()  # the next runner's turn: it wants the memory
    rate = _copy_rate(stream)
    torch.cuda.empty_cache()
    return {"replays": replays, "copies": n, "cold": cold, "hot": hot, "copy_rate": rate, "outputs": 1}
