"""Makes a runner for `attest verify --runner` of Python functions, by the protocol of kernels/runner/PROTOCOL.md.

SPDX-License-Identifier: Apache-2.0

    from attest_runner import kernel, serve, f64, put

    @kernel("uclip_norm", numerics="free_order=1")
    def mine(x, alpha, gamma, beta, y, *, lo, hi):
        put(y, f64(gamma) * numpy.clip(f64(alpha) * f64(x), lo, hi) + f64(beta))

    serve()

A function takes what its signature names: tensors by the operator's names (`attest help tensors FAMILY`), parameters and
sizes by theirs, `job` for all of them at once. Where a number has the name of a tensor, the tensor comes, and the number is
`param_NAME` or `size_NAME`. A name that not every job has (block_table, key_start, slopes) wants a default, `block_table=None`;
so does a tensor that may have no elements, which attest leaves out. Every output must be written, so it must be taken. `bench`
is None, or, for `attest bench`, the replays to time: then wanted is what attest_runner_cuda.time_cuda() returns. Tensors are
arrays over attest's own memory: bf16, e4m3 and e5m2 are codes, which f64() decodes and put() rounds to. Needs numpy; torch_of() needs PyTorch.
"""
import difflib
import hashlib
import inspect
import mmap
import os
import re
import select
import signal
import sys
import threading
import time
import traceback
import types

import numpy as np

__all__ = ["kernel", "serve", "f64", "put", "encode", "torch_of", "requests", "Unsupported", "Tensor"]
PROTOCOL = 5
KERNELS = []


class Unsupported(Exception):
    """`raise Unsupported("no pages")`: a function declines a problem, for its shapes, formats and parameters, never for values."""


# ---- number formats ------------------------------------------------------------------------------
STORAGE = {"f64": np.float64, "f32": np.float32, "tf32": np.float32, "f16": np.float16, "i32": np.int32,
           "bf16": np.uint16, "e4m3": np.uint8, "e5m2": np.uint8}
LONG_NAMES = {"bfloat16": "bf16", "half": "f16", "float16": "f16", "fp16": "f16", "float": "f32", "float32": "f32", "fp32": "f32",
              "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}
WORDS = {"query": "q", "queries": "q", "key": "k", "keys": "k", "value": "v", "values": "v", "out": "o", "output": "o",
         "input": "x"}
# What numpy has no type for: significand bits with the hidden one, exponent of the least normal number, code of an infinity
# (of the NaN where there is none), code of the NaN; place of the sign, zero bits below the code.
NARROW = {"bf16": (8, -126, 0x7F80, 0x7FC0, 15, 0), "e4m3": (4, -6, 0x7F, 0x7F, 7, 0), "e5m2": (3, -14, 0x7C, 0x7E, 7, 0),
          "tf32": (11, -126, 0x7F800000 >> 13, 0x7FC00000 >> 13, 31, 13)}


def _fp8_values(name):
    """The value of each of the 256 codes."""
    bits, least, infinity, nan, _, _ = NARROW[name]
    code = np.arange(128)
    exponent, fraction = code >> (bits - 1), code & ((1 << (bits - 1)) - 1)
    significand = np.where(exponent > 0, fraction + (1 << (bits - 1)), fraction).astype(np.float64)
    value = np.ldexp(significand, np.maximum(exponent, 1) - 1 + least - (bits - 1))
    value[infinity:] = np.nan
    if infinity < nan:
        value[infinity] = np.inf
    return np.concatenate([value, -value])


FP8_VALUES = {name: _fp8_values(name) for name in ("e4m3", "e5m2")}


def _encode_narrow(name, x):
    """Codes of doubles, to nearest even in one step: through f32 some would be rounded twice."""
    bits, least, infinity, nan, sign, shift = NARROW[name]
    magnitude = np.abs(x)
    drop = np.uint64(53 - bits)
    pattern = magnitude.view(np.uint64)
    # A carry out of the significand counts the exponent up, which is the next code.
    rounded = (pattern + (np.uint64(1) << (drop - np.uint64(1))) - np.uint64(1) + (pattern >> drop & np.uint64(1))) >> drop
    code = rounded.astype(np.int64) - ((least + 1022) << (bits - 1))
    small = magnitude < np.ldexp(1.0, least)  # where codes count multiples of the smallest number
    multiples = np.rint(np.where(small, magnitude, 0.0) * np.ldexp(1.0, bits - 1 - least)).astype(np.int64)
    code = np.where(small, multiples, code)
    code = np.where(np.isnan(x), nan, np.minimum(code, infinity))
    code = code << shift | np.signbit(x).astype(np.int64) << sign
    return code.astype(np.uint32).view(np.float32) if shift else code.astype(STORAGE[name])


def encode(name, values):
    """Values in the storage of a format, rounded to nearest even; beyond its end infinity (e4m3: NaN), NaN canonical."""
    values = _doubles(values)
    if name == "i32":
        return values.astype(np.int64).astype(np.int32)
    if name in NARROW:
        return _encode_narrow(name, values)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(np.isnan(values), np.copysign(np.nan, values), values).astype(STORAGE[name])


def _doubles(values):
    """Numbers of any kind as plain doubles: arrays, tensors of this module, PyTorch's."""
    if isinstance(values, Tensor):
        return f64(values)
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, np.float64)


class Tensor(np.ndarray):
    """Part of attest's memory, with its `format`, `name` and `role`. What numpy computes of one is a plain array."""

    def __array_finalize__(self, parent):
        for field in ("format", "name", "role"):
            setattr(self, field, getattr(parent, field, None))

    def coded(self):
        """Whether the elements are not what numpy takes them for."""
        return self.format in NARROW and self.dtype == STORAGE[self.format] and self.format != "tf32"

    def _refuse(self, doing):
        raise TypeError("%s of %s, whose elements are codes of %s: f64() has their values, put() writes them" % (
            doing, self.name, self.format))

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        for t in inputs + (out or ()):
            if isinstance(t, Tensor) and t.coded():
                t._refuse(ufunc.__name__)
        plain = [np.asarray(t) if isinstance(t, Tensor) else t for t in inputs]
        if out:
            options["out"] = tuple(np.asarray(t) if isinstance(t, Tensor) else t for t in out)
        result = getattr(ufunc, method)(*plain, **options)
        return out[0] if out and len(out) == 1 else result

    def __array_function__(self, function, kinds, args, options):
        if self.coded() and function.__name__ in ("dot", "einsum", "inner", "tensordot", "vdot"):
            self._refuse(function.__name__)
        return super().__array_function__(function, kinds, args, options)

    def __setitem__(self, index, values):
        raw = getattr(values, "dtype", None) == self.dtype and getattr(values, "format", self.format) == self.format
        if self.format in NARROW and self.dtype == STORAGE[self.format] and not (raw and self.coded()):
            values = encode(self.format, values)
        super().__setitem__(index, values)

    def __repr__(self):
        return "%s %s %s: %s" % (self.name, self.format, self.shape, f64(self))

    __str__ = __repr__


def f64(t):
    """The values of a tensor, decoded, as an array of doubles; always a copy."""
    if isinstance(t, Tensor) and t.coded():
        if t.format == "bf16":
            return (np.asarray(t).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
        return FP8_VALUES[t.format][np.asarray(t)]
    return np.array(t, np.float64, subok=False)


def put(t, values):
    """Writes values to a tensor, or to part of one (`o[3:5]`), rounded to nearest even into its format."""
    t[...] = encode(t.format, values) if isinstance(t, Tensor) and t.format else values


def torch_of(t):
    """A tensor as PyTorch's, over the same memory: of bfloat16 and float8, too; copy_() into it rounds as PyTorch does."""
    import torch  # pylint: disable=import-outside-toplevel
    if not isinstance(t, Tensor) or not t.coded():
        return torch.from_numpy(np.asarray(t))
    name = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}[t.format]
    if not hasattr(torch, name):
        raise Unsupported("PyTorch %s has no %s" % (torch.__version__, name))
    codes = np.asarray(t)
    return torch.from_numpy(codes.view(np.int16) if t.format == "bf16" else codes).view(getattr(torch, name))


# ---- jobs and kernels ----------------------------------------------------------------------------------------
def _escape(text):
    """Printable ASCII but space, % and = stands for itself; of the rest every byte is %XX."""
    return "".join(chr(c) if 0x20 < c < 0x7F and chr(c) not in "%=" else "%%%02X" % c for c in text.encode(errors="replace"))


def _unescape(text):
    return re.sub("%([0-9A-F]{2})", lambda code: chr(int(code[1], 16)), text).encode("latin-1").decode(errors="replace")


def _number(text):
    """Whole numbers are int; the others as C's %a writes them, or decimal."""
    return int(text) if re.fullmatch("-?[0-9]+", text) else float.fromhex(text) if "x" in text else float(text)


class Job:
    """One launch: `op`, `dtype`, `size` and `param` by name, `tensors` by name in the operator's order."""

    def __init__(self, fields, block):
        single = dict(fields)
        self.id, self.variant = int(single["id"]), int(single["variant"])
        self.op, self.dtype, self.timeout = single["op"], single["dtype"], float.fromhex(single["timeout"])
        self.size = {key[5:]: int(value) for key, value in fields if key.startswith("size.")}
        self.param = {key[6:]: _number(value) for key, value in fields if key.startswith("param.")}
        self.unknown_format, self.tensors = "", {}
        for text in (value for key, value in fields if key == "tensor"):
            _, name, role, kind, shape, offset, size = text.split(":")
            if kind not in STORAGE:
                self.unknown_format = "tensor %s is of format %s, which this runner does not know" % (name, kind)
                continue
            dtype = np.dtype(STORAGE[kind])
            flat = np.frombuffer(block, dtype, int(size) // dtype.itemsize, int(offset))
            t = flat.reshape([int(n) for n in shape.split(",")]).view(Tensor)
            t.format, t.name, t.role = kind, name, role
            self.tensors[name] = t
        self.names = {**{"size_" + k: v for k, v in self.size.items()}, **{"param_" + k: v for k, v in self.param.items()},
                      **self.size, **self.param, **self.tensors, "job": self, "bench": int(single.get("timings", 0)) or None}

    def outputs(self):
        """Names of what the launch writes."""
        return [name for name, t in self.tensors.items() if t.role != "in"]


def _no_keys(q, name, job):
    """What stands for a tensor that attest leaves out, since no request has a key."""
    t = np.zeros((0, job.size["hk"], job.size["d"]), q.dtype).view(Tensor)
    t.format, t.name, t.role = q.format, name, "in"
    return t


def requests(job):
    """The requests of an attention's job, one after the other, whatever the layout of keys. Each has q, k, v, o and, where the
    operator has one, lse: [query, head, channel], [key, kv head, channel], lse [query, head]. q, o and lse are views to write
    to; k and v are views too where keys are contiguous, and gathered where they are in pages. A query sees the first `seen` [query]
    keys, `visible` [query, key] as a mask; `group` heads share a kv head; `index` is the request's, `slots` where its keys are."""
    t = job.tensors
    if "query_start" not in t or "seq_lens" not in t:
        raise ValueError("requests() is for attention; %s has no query_start and seq_lens" % job.op)
    group = job.size["h"] // job.size["hk"]
    for i, keys in enumerate(t["seq_lens"].tolist()):
        first, end = t["query_start"][i:i + 2].tolist()
        if "block_table" in t:
            key, page = np.arange(keys), job.size["page"]
            slots = np.asarray(t["block_table"])[i][key // page].astype(np.int64) * page + key % page
        else:
            start = int(t["key_start"][i])
            slots = slice(start, start + keys)
        behind = np.arange(end - first)[::-1] if job.param.get("causal") else np.zeros(end - first, int)
        seen = np.maximum(keys - behind, 0)
        part = {name: t[name][first:end] for name in ("q", "o", "lse") if name in t}
        part.update({name: t[name][slots] if name in t else _no_keys(t["q"], name, job) for name in ("k", "v")})
        yield types.SimpleNamespace(index=i, slots=slots, group=group, seen=seen, visible=np.arange(keys) < seen[:, None], **part)


class _Kernel:
    """A function, what it is called by, and what it declares."""

    def __init__(self, function, family, name, numerics, dtypes, summary, source):
        self.function, self.family, self.name, self.numerics = function, family, name, numerics
        self.dtypes = dtypes.split() if isinstance(dtypes, str) else list(dtypes or [])
        try:
            self.path = os.path.relpath(inspect.getsourcefile(function))
            with open(self.path, "rb") as file:
                self.sha256 = hashlib.sha256(file.read()).hexdigest()
        except (TypeError, OSError):  # typed at a prompt, or built in
            self.path, self.sha256 = "", ""
        self.summary = summary or (inspect.getdoc(function) or "").split("\n")[0]
        self.source = source or os.path.basename(self.path)
        self.has_returned = False
        self.compiled_from = getattr(getattr(function, "__code__", None), "co_filename", "")
        self.parameters = inspect.signature(function).parameters.values()
        self.takes_all = any(p.kind == p.VAR_KEYWORD for p in self.parameters)
        for p in self.parameters:
            if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL):
                raise TypeError("%s() takes %s by its place; arguments come by name" % (name, p))
        for unknown in (x for x in self.dtypes if x not in STORAGE):
            near = difflib.get_close_matches(unknown, STORAGE, 1, 0.3)
            raise ValueError("dtypes=%r of %s: %s is none of %s%s" % (dtypes, name, unknown, " ".join(STORAGE),
                             "; did you mean %s?" % LONG_NAMES.get(unknown, near[0] if near else "bf16")))
        for what, text in (("family", family), ("variant", name)):
            if not re.fullmatch(r"[A-Za-z0-9_.-]{1,60}", text):
                raise ValueError("%s=%r: wanted up to 60 letters, digits, _, . and -" % (what, text))
        if not callable(numerics):
            self.declares(None)

    def declares(self, job):
        """What it says of its arithmetic; a text says the same of all jobs."""
        text = self.numerics(job) if callable(self.numerics) else self.numerics
        if len(text.encode()) > 639:
            raise ValueError("numerics of %s: %d bytes, there is room for 639" % (self.name, len(text.encode())))
        return text

    def see_result(self, result, job):
        """Nobody looks at it: said once, since outputs that were returned and not written are found DIRTY without a word of why."""
        if result is not None and not self.has_returned:
            self.has_returned = True
            print("attest_runner: %s() returned a value, which nobody looks at: outputs are written in place, put(%s, ...)" % (
                self.function.__name__, job.outputs()[0]), file=sys.stderr)
        return {}

    def arguments(self, job):
        """What the function takes, by name; a TypeError that says what there is where a name is not to be had."""
        taken = {}
        for p in self.parameters:
            if p.kind == p.VAR_KEYWORD:
                taken.update({k: v for k, v in {**job.size, **job.param, **job.tensors}.items() if k not in taken})
            elif p.name in job.names:
                taken[p.name] = job.names[p.name]
            elif p.default is p.empty:
                raise TypeError(self._no_such_name(p.name, job))
        lost = [name for name in job.outputs() if name not in taken and "job" not in taken]
        if lost:
            raise TypeError("%s() does not take %s, which %s wants written" % (self.function.__name__, " and ".join(lost), job.op))
        return taken

    def _no_such_name(self, name, job):
        word = WORDS.get(name.lower())
        near = [word] if word in job.tensors else difflib.get_close_matches(name, job.names, 1)
        advice = "did you mean %s?" % near[0] if near else "what only some jobs have wants a default, %s=None." % name
        return "%s() takes %s, which this job of %s does not have: %s Tensors: %s. Parameters: %s. Sizes: %s" % (
            self.function.__name__, name, job.op, advice, *(" ".join(x) for x in (job.tensors, job.param, job.size)))


def kernel(family, numerics="free_order=1", *, variant=None, dtypes=None, summary=None, source=None):
    """Makes a function a variant of a family (`attest list families`). numerics: what it declares of its arithmetic (`attest help
    numerics`), or a function of the job that says it, where it depends on shapes, formats or parameters; variant: its name, else
    01_ and the function's; dtypes: of the activations, "bf16 f16", all others are declined; summary: a line, else the first
    of its docstring; source: where it comes from, else its file."""

    def register(function):
        name = variant or "%02d_%s" % (1 + sum(k.family == family for k in KERNELS), function.__name__)
        if any((k.family, k.name) == (family, name) for k in KERNELS):
            raise ValueError("%s/%s is there twice" % (family, name))
        KERNELS.append(_Kernel(function, family, name, numerics, dtypes, summary, source))
        return function

    return register


# ---- conversation --------------------------------------------------------------------------------
def _clip(text, size):
    """At most so many bytes of it."""
    return text.encode(errors="replace")[:size].decode(errors="ignore")


def _reason(error, path):
    """What an error says, in one line, and where in the user's file that was: the last of its lines on the way, which may have
    led through libraries."""
    lines = [line for line in "".join(traceback.format_exception_only(type(error), error)).split("\n") if line.strip()]
    own, others, cause, seen = [], [], error, set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        frames = [f for f in traceback.extract_tb(cause.__traceback__) if f.filename != __file__]
        own += [f for f in frames if f.filename == path]
        others += frames
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    frame = (own or others or [None])[-1]
    where = " (%s line %d)" % (os.path.basename(frame.filename), frame.lineno) if frame else ""
    return _clip(" | ".join(line.strip() for line in lines), 511 - len(where.encode())) + where


def _times(result):
    """What a function that was to time returned, as fields of `done`."""
    wanted = {"replays": int, "copies": int, "cold": float, "hot": float, "copy_rate": float}
    if not isinstance(result, dict) or not wanted.keys() <= result.keys():
        raise TypeError("for bench=N wanted a dict of %s, found %.80r" % (" ".join(wanted), result))
    fields = {name: result[name] if kind is int else float(result[name]).hex() for name, kind in wanted.items()}
    return dict(fields, outputs=1) if result.get("outputs") else fields


class _Conversation:
    """Standard input and output, and the memory that both sides share."""

    def __init__(self, takes, device):
        self.takes, self.device, self.block, self.fd = takes, device, None, None
        self.output = os.dup(1)
        os.dup2(2, 1)  # a print() of a function must not get in between
        sys.stdout.flush()
        self.input = sys.stdin.buffer

    def write(self, data):
        """All of it: a pipe takes as much as it likes."""
        data = memoryview(data)
        while data:
            data = data[os.write(self.output, data):]

    def say(self, verb, **fields):
        """One line."""
        self.write((" ".join([verb] + ["%s=%s" % (k, _escape(str(v))) for k, v in fields.items()]) + "\n").encode())

    def greet(self):
        """What there is."""
        self.say("hello", protocol=PROTOCOL, name=_clip(os.path.basename(sys.argv[0]) or "python", 63), transports="memfd,inline",
                 device=_clip(self.device or "Python %s, numpy %s" % (sys.version.split()[0], np.__version__), 255),
                 variants=len(KERNELS), **({"takes": self.takes} if self.takes else {}))
        for i, k in enumerate(KERNELS):
            self.say("variant", index=i, family=k.family, name=k.name, path=_clip(k.path, 159), sha256=k.sha256,
                     summary=_clip(k.summary, 255), source=_clip(k.source, 63),
                     **({"numerics": "free_order=1", "asked": 1} if callable(k.numerics) else {"numerics": k.numerics}),
                     **({} if k.takes_all or "bench" in (p.name for p in k.parameters) else {"timed": 0}))
        self.say("ready")

    def open(self, single):
        """memfd only where the descriptor really is the announced memory."""
        if single["transport"] == "memfd":
            try:
                self.block = mmap.mmap(int(single["fd"]), int(single["memory"]))
                right = self.block[:16] == bytes.fromhex(single["nonce"])
            except (OSError, ValueError, OverflowError):
                right = False
            if not right:
                return self.say("refused", reason="descriptor %s does not hold that memory" % single["fd"])
            self.fd = int(single["fd"])
        return self.say("opened", transport=single["transport"])

    def run(self, fields, single):
        """One job: verb and fields of the reply."""
        if self.fd is None:
            self.block = bytearray(self.input.read(int(single["used"])))
            if len(self.block) < int(single["used"]):
                sys.exit(0)  # attest is gone
        elif int(single["memory"]) != len(self.block):
            self.block = mmap.mmap(self.fd, int(single["memory"]))
        job, chosen = Job(fields, self.block), None
        signal.setitimer(signal.ITIMER_REAL, job.timeout + 5)  # ends a job that hangs where nobody is left to do it
        try:
            chosen = KERNELS[job.variant]
            self.decline(chosen, job)
            asked = callable(chosen.numerics) and "ask" in single  # then it is asked what it declares, and computes nothing
            arguments = chosen.arguments(job) if job.outputs() and not asked else None
            start = time.monotonic()
            result = chosen.function(**arguments) if arguments is not None else None  # else there is nothing to write
            seconds = time.monotonic() - start
            more = _times(result) if job.names["bench"] else chosen.see_result(result, job)
            if asked:
                more = dict(more, numerics=chosen.declares(job))
        except Unsupported as error:
            return self.say("unsupported", id=job.id, reason=_clip(str(error) or "declined", 511))
        except Exception as error:  # pylint: disable=broad-except  # whatever a function raises is that job's
            traceback.print_exc()
            return self.say("failed", id=job.id, reason=_reason(error, chosen.compiled_from if chosen else ""))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.say("done", id=job.id, seconds=seconds.hex(), bytes=0 if self.fd is not None else len(self.block), **more)
        return self.write(self.block) if self.fd is None else None

    def decline(self, chosen, job):
        """What no function is called for."""
        if job.names["bench"] and "bench" not in (p.name for p in chosen.parameters):
            raise Unsupported("this function is not for timings: it takes no bench=None, and returns no attest_runner_cuda.time_cuda(...)")
        if job.unknown_format:
            raise Unsupported(job.unknown_format)
        if chosen.dtypes and job.dtype not in chosen.dtypes:
            raise Unsupported("for %s alone" % " and ".join(chosen.dtypes))
        named = {p.name for p in chosen.parameters}
        for name in (word.split(".")[1] for word in self.takes.split(",") if word.startswith(job.op + ".")):
            if not chosen.takes_all and not named & {name, "param_" + name, "job"}:
                raise TypeError("serve() says that %s.%s is taken, but %s() does not take it" % (job.op, name, chosen.function.__name__))

    def serve(self):
        """Until quit or the end of input: the exit status."""
        self.greet()
        for line in self.input:
            verb, *words = line.decode("ascii").rstrip("\n").split(" ")
            if verb == "quit":
                return 0
            try:
                fields = [(key, _unescape(value)) for key, value in (word.split("=", 1) for word in words)]
                if verb == "open":
                    self.open(dict(fields))
                elif verb == "job":
                    self.run(fields, dict(fields))
                else:
                    raise ValueError("unknown verb " + verb)
            except (KeyError, ValueError) as error:
                self.say("error", reason=_clip("%s line: %s: %s" % (verb, type(error).__name__, error), 511))
                return 3
        return 0


def _end_with_input():
    """Two seconds after nobody can write to standard input any more the process ends, in the middle of a job too."""
    (ends := select.poll()).register(0, 0)
    ends.poll()
    time.sleep(2)
    os._exit(0)


def serve(takes="", device=""):
    """Speaks with attest until it is done. takes: of the parameters that runners may be older than (PROTOCOL.md), those that all
    functions take, "softmax_attention.softcap,softmax_attention.alibi"; jobs that have others of these do not come. device: what
    tables name as the place of the results; else the versions of Python and numpy."""
    if not KERNELS:
        sys.exit("attest_runner: no function has @kernel(FAMILY)")
    if sys.stdin is None or sys.stdin.isatty():
        sys.exit("this is a runner: attest verify --runner 'python3 %s'" % sys.argv[0])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    threading.Thread(target=_end_with_input, daemon=True).start()
    sys.exit(_Conversation(takes, device).serve())
