#!/usr/bin/env python3
"""A runner in plain Python: proof that the protocol of kernels/runner/PROTOCOL.md is enough to write one.

SPDX-License-Identifier: Apache-2.0

Usage: runner_client.py [--transports memfd,inline] [--misbehave KIND] [--also FAMILY]
Computes AsyncT and softmax attention and UClipNorm in double, element by element: for small shapes only.
With --also it offers a variant of one family more, whose operator it may not know: then it declines.
With --misbehave it offers one variant more, asynct_decode/99_misbehaves, that breaks the protocol in way KIND; or declares
what does not fit every case, raises an exception, or sends its parent a signal while the case has three keys (and there is
another variant behind it).
"""
import math
import mmap
import os
import signal
import struct
import sys
import time

PROTOCOL = 5
MISBEHAVIOURS = ("crash", "exit0", "hang", "garbage", "nul", "wrong_id", "bad_length", "wrong_result", "chatter",
                 "long_line", "half_line", "close_output", "fails", "unsupported", "noise", "bad_hello", "no_hello",
                 "bad_numerics", "many_variants", "old_protocol", "misfit", "raises", "sigint", "sigterm")


# ---- lines ---------------------------------------------------------------------------------------

def escape(text):
    """Printable ASCII but space, % and = stands for itself; every other byte becomes %XX."""
    return "".join(chr(c) if 0x20 < c < 0x7F and chr(c) not in "%=" else "%%%02X" % c for c in text.encode())


def unescape(text):
    """The inverse of escape()."""
    parts = text.split("%")
    return parts[0] + "".join(chr(int(part[:2], 16)) + part[2:] for part in parts[1:])


def make_line(verb, **fields):
    """One line with its newline, as bytes."""
    return (" ".join([verb] + ["%s=%s" % (k, escape(str(v))) for k, v in fields.items()]) + "\n").encode()


def parse_line(line):
    """(verb, list of (key, value)): a list, because `tensor` comes several times."""
    words = line.decode("ascii").rstrip("\n").split(" ")
    pairs = [word.split("=", 1) for word in words[1:]]
    return words[0], [(key, unescape(value)) for key, value in pairs]


# ---- number formats ------------------------------------------------------------------------------

def bf16_bits(x):
    """Nearest bfloat16, ties to even, straight from double."""
    if math.isnan(x):
        return 0x7FC0
    if not math.isinf(x) and x != 0:
        quantum = math.ldexp(1.0, max(math.frexp(x)[1] - 8, -133))
        x = round(x / quantum) * quantum
    return struct.unpack("<I", pack_float("<f", x))[0] >> 16


def pack_float(code, x):
    """struct.pack, with overflow going to infinity as it does in hardware."""
    try:
        return struct.pack(code, x)
    except OverflowError:
        return struct.pack(code, math.copysign(math.inf, x))


BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4}


class Tensor:
    """A view of part of the block."""

    def __init__(self, block, text):
        index, self.name, self.role, self.format, shape, offset, size = text.split(":")
        self.index = int(index)
        self.shape = [int(n) for n in shape.split(",")]
        self.data = memoryview(block)[int(offset):int(offset) + int(size)]

    def __getitem__(self, i):
        width = BYTES[self.format]
        code = bytes(self.data[i * width:(i + 1) * width])
        if self.format == "i32":
            return struct.unpack("<i", code)[0]
        if self.format == "f16":
            return struct.unpack("<e", code)[0]
        return struct.unpack("<f", code if self.format == "f32" else b"\0\0" + code)[0]

    def __setitem__(self, i, x):
        width = BYTES[self.format]
        if self.format == "bf16":
            code = struct.pack("<H", bf16_bits(x))
        else:
            code = pack_float("<e" if self.format == "f16" else "<f", x)
        self.data[i * width:(i + 1) * width] = code


class Job:
    """A job line, taken apart."""

    def __init__(self, fields, block):
        single = dict(fields)
        self.id, self.variant, self.op = int(single["id"]), int(single["variant"]), single["op"]
        self.size = {k[5:]: int(v) for k, v in fields if k.startswith("size.")}
        self.param = {k[6:]: float.fromhex(v) if "." in v or "x" in v or "n" in v else int(v)
                      for k, v in fields if k.startswith("param.")}
        tensors = [Tensor(block, v) for k, v in fields if k == "tensor"]
        self.t = {t.name: t for t in tensors}
        self.outputs = [t for t in tensors if t.role != "in"]


# ---- operators -----------------------------------------------------------------------------------

def attention_rows(job):
    """For each (token, head): its index, the rows of k and v that its keys have, and its query."""
    s, t = job.size, job.t
    for r in range(s["b"]):
        first, end, keys = t["query_start"][r], t["query_start"][r + 1], t["seq_lens"][r]
        for token in range(first, end):
            visible = keys - (end - 1 - token) if job.param["causal"] else keys
            for head in range(s["h"]):
                kv_head = head // (s["h"] // s["hk"])
                at = [(key_slot(job, r, key) * s["hk"] + kv_head) * s["d"] for key in range(max(visible, 0))]
                row = token * s["h"] + head
                query = [t["q"][row * s["d"] + i] for i in range(s["d"])]
                scale = job.param["scale"]
                score = [scale * sum(q * t["k"][a + i] for i, q in enumerate(query)) for a in at]
                yield row, head, at, score


def key_slot(job, request, key):
    """Row of k and v that holds a key."""
    page = job.size["page"]
    if page == 0:
        return job.t["key_start"][request] + key
    return job.t["block_table"][request * job.size["max_pages"] + key // page] * page + key % page


def weighted_sum(job, row, at, p):
    """Rows of v times p, into o; a key whose p is 0 is not read."""
    d = job.size["d"]
    for i in range(d):
        job.t["o"][row * d + i] = sum(w * job.t["v"][a + i] for w, a in zip(p, at) if w != 0)


def asynct(job):
    """Clamped gate over FIR-filtered scores."""
    taps, param = job.size["taps"], job.param
    for row, head, at, score in attention_rows(job):
        r = [0.0 if param["relu_pre"] and s < 0 else s for s in score]
        p = []
        for n in range(len(r)):
            near = [r[n - j] if n >= j else 0.0 for j in range(taps)]
            if param["fir_form"] == 0:
                z = r[n] - job.t["sigma"][head] / (min(n + 1, taps) if param["edge"] else taps) * sum(near)
            else:
                z = sum(job.t["taps"][head * taps + j] * x for j, x in enumerate(near))
            if z == z:
                z = max(min(max(z, 0.0), param["clip_max"]), param["clip_min"])
            p.append(job.t["gamma"][head] * z)
        weighted_sum(job, row, at, p)


def softmax(job):
    """The usual kind, with its log-sum-exp."""
    for row, _, at, score in attention_rows(job):
        most = max(score, default=-math.inf)
        e = [math.exp(s - most) for s in score]
        total = sum(e)
        weighted_sum(job, row, at, [x / total for x in e])
        job.t["lse"][row] = most + math.log(total) if e else -math.inf


def uclip(job):
    """Clamp of a slope; no reduction."""
    t, channels = job.t, job.size["channels"]
    for i in range(job.size["tokens"] * channels):
        c = i % channels
        x = t["alpha"][c] * t["x"][i]
        if x == x:
            x = min(max(x, job.param["lo"]), job.param["hi"])
        t["y"][i] = t["gamma"][c] * x + t["beta"][c]


OPERATORS = {"asynct_attention": asynct, "softmax_attention": softmax, "uclip_norm": uclip}

NUMERICS = "free_order=1 qk_unit=f64 pv_unit=f64 clamp=propagate pv_zero=skipped batch_invariant=1"
FAMILIES = ["asynct_decode", "asynct_prefill", "softmax_decode", "softmax_prefill", "uclip_norm"]


# ---- conversation --------------------------------------------------------------------------------

class Runner:
    """State of one conversation on standard input and output."""

    def __init__(self, transports, misbehave, also):
        self.transports, self.misbehave = transports, misbehave
        self.families = FAMILIES + [also] * bool(also)
        self.out = os.dup(1)
        os.dup2(2, 1)  # a print() must not break the protocol
        self.input = sys.stdin.buffer
        self.fd, self.block, self.size = None, None, 0
        self.signalled = False

    def write(self, data):
        """All of it: a pipe takes as much as it likes."""
        while data:
            data = data[os.write(self.out, data):]

    def hello(self):
        """Greeting, one line per variant, ready."""
        names = [(family, "70_python") for family in self.families]
        if self.misbehave:
            names.append(("asynct_decode", "99_misbehaves"))
        if self.misbehave in ("sigint", "sigterm"):
            names.append(("asynct_decode", "99_next"))
        kind = self.misbehave
        if kind == "no_hello":
            time.sleep(3600)
        if kind == "bad_hello":
            self.write(b"Welcome to the runner!\n")
        count = 10 ** 9 if kind == "many_variants" else len(names)
        self.write(make_line("hello", protocol=0 if kind == "old_protocol" else PROTOCOL, name="runner_client.py",
                             device="Python %d.%d" % sys.version_info[:2], transports=self.transports,
                             variants=count))
        numerics = "qk_unit=abacus" if kind == "bad_numerics" else NUMERICS
        for i, (family, name) in enumerate(names):
            fits = kind != "misfit" or name != "99_misbehaves"
            self.write(make_line("variant", index=i, family=family, name=name, path="tests/python/runner_client.py",
                                 sha256="", summary="plain Python, one double at a time", source="ours",
                                 numerics=numerics if fits else numerics + " fir_order=pooled"))
        self.write(b"ready\n")
        self.bad_variant = len(self.families) if self.misbehave else -1

    def open(self, fields):
        """Takes memfd only when the descriptor really is the announced memory."""
        single = dict(fields)
        if single["transport"] == "inline":
            self.fd = None
        else:
            self.fd, self.size = int(single["fd"]), int(single["memory"])
            try:
                self.block = mmap.mmap(self.fd, self.size)
            except (OSError, ValueError) as error:
                return self.write(make_line("refused", reason=error))
            if self.block[:16] != bytes.fromhex(single["nonce"]):
                return self.write(make_line("refused", reason="another memory"))
        return self.write(make_line("opened", transport=single["transport"]))

    def job(self, fields):
        """One job and its reply."""
        single = dict(fields)
        if self.fd is None:
            self.block = bytearray(self.input.read(int(single["used"])))
        elif int(single["memory"]) != self.size:
            self.size = int(single["memory"])
            self.block = mmap.mmap(self.fd, self.size)
        job = Job(fields, self.block)
        misbehaves = job.variant == self.bad_variant
        if misbehaves and self.before_reply(job):
            return None
        if job.op not in OPERATORS:
            return self.write(make_line("unsupported", id=job.id, reason="no operator %s in Python" % job.op))
        if "timings" in single:
            return self.time(job, int(single["timings"]))
        start = time.monotonic()
        OPERATORS[job.op](job)
        if misbehaves and self.misbehave == "wrong_result":
            job.outputs[0][0] = job.outputs[0][0] + 1
        size = len(self.block) if self.fd is None else 0
        if misbehaves:
            job.id += 1 if self.misbehave == "wrong_id" else 0
            size += 1 if self.misbehave == "bad_length" else 0
        self.write(make_line("done", id=job.id, seconds=(time.monotonic() - start).hex(), bytes=size))
        if self.fd is None:
            self.write(bytes(self.block))
        if misbehaves and self.misbehave == "chatter":
            self.write(b"and another thing\n")
        return None

    def time(self, job, replays):
        """Medians of plain runs; there are no caches to warm, so hot is cold."""
        seconds = []
        for _ in range(replays):
            start = time.monotonic()
            OPERATORS[job.op](job)
            seconds.append(time.monotonic() - start)
        median = sorted(seconds)[replays // 2].hex()
        start, large = time.monotonic(), bytes(1 << 24)
        rate = 2 * len(bytearray(large)) / (time.monotonic() - start)
        size = len(self.block) if self.fd is None else 0
        self.write(make_line("done", id=job.id, seconds=median, bytes=size, replays=replays, copies=1, cold=median,
                             hot=median, copy_rate=rate.hex(), outputs=1))
        if self.fd is None:
            self.write(bytes(self.block))

    def before_reply(self, job):
        """The misbehaviours that come instead of a result: True when a whole reply was sent."""
        kind = self.misbehave
        if kind == "crash":
            os.write(2, b"about to touch address 0\n")
            os.kill(os.getpid(), signal.SIGSEGV)
        if kind == "exit0":
            os._exit(0)
        if kind == "raises":
            self.deep(40)
        if kind in ("sigint", "sigterm") and job.t["seq_lens"][0] == 3 and not self.signalled:
            self.signalled = True
            os.kill(os.getppid(), signal.SIGINT if kind == "sigint" else signal.SIGTERM)
        if kind == "hang":
            time.sleep(3600)
        if kind == "close_output":
            os.close(self.out)
            time.sleep(3600)
        lines = {"garbage": b"\xffnot a line of the protocol\n", "nul": b"done\0 id=%d\n" % job.id,
                 "long_line": b"done id=" + b"1" * 100000 + b"\n", "half_line": b"done id=",
                 "fails": make_line("failed", id=job.id, reason="out of patience"),
                 "unsupported": make_line("unsupported", id=job.id, reason="not on a Friday")}
        if kind in lines:
            self.write(lines[kind])
            if kind not in ("fails", "unsupported"):
                time.sleep(3600)
            return True
        if kind == "noise":
            for _ in range(64):
                os.write(2, b"warning: nothing is wrong\n" * 1000)
        return False

    def deep(self, frames):
        """Raises at the end of a long traceback."""
        if frames == 0:
            raise ValueError("the last line says why")
        self.deep(frames - 1)

    def serve(self):
        """Until quit or the end of input."""
        self.hello()
        for line in self.input:
            verb, fields = parse_line(line)
            if verb == "quit":
                return 0
            if verb not in ("open", "job"):
                self.write(make_line("error", reason="unknown verb " + verb))
                return 3
            getattr(self, verb)(fields)
        return 0


def main(argv):
    """Arguments, then the conversation."""
    options = {"--transports": "memfd,inline", "--misbehave": "", "--also": ""}
    if len(argv) % 2 or any(key not in options for key in argv[::2]):
        sys.exit(__doc__)
    options.update(zip(argv[::2], argv[1::2]))
    if options["--misbehave"] not in ("",) + MISBEHAVIOURS:
        sys.exit("--misbehave: known kinds are " + ", ".join(MISBEHAVIOURS))
    return Runner(options["--transports"], options["--misbehave"], options["--also"]).serve()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
