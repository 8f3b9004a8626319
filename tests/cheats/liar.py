"""A runner that lies, in a way that its seed draws: what it does wrong, where, how much, and in which launch it begins.

SPDX-License-Identifier: Apache-2.0

Usage: liar.py SEED (`liar.py honest` does nothing wrong; `liar.py count` prints how many kinds of lies there are)
"""
import os
import random
import signal
import sys
import time

from cheat import Liar, kernel, put, serve_lies, uclip

NOISE = bytes(range(33, 127))


class Lies(Liar):
    """One lie, told from launch `begin` on. Questions (`ask`) are answered truly: nobody judges what they leave."""

    def __init__(self, takes, device):
        super().__init__(takes, device)
        honest = sys.argv[1] == "honest"
        self.random = random.Random(0 if honest else int(sys.argv[1]))
        self.lie = None if honest else KINDS[int(sys.argv[1]) % len(KINDS)]
        self.begin, self.launch, self.is_launch = self.random.randrange(3), -1, False
        self.tensors, self.kept = [], {}

    def lies(self, kind):
        """Whether this is the lie, and its time has come."""
        return self.lie == kind and self.is_launch and self.launch >= self.begin

    def run(self, fields, single):
        self.is_launch = "ask" not in single
        self.launch += self.is_launch
        self.tensors = [value.split(":") for key, value in fields if key == "tensor"]
        if self.lies("dies"):
            os.kill(os.getpid(), self.random.choice((signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM)))
        if self.lies("exits"):
            os._exit(self.random.randrange(256))
        if self.lies("sleeps"):
            time.sleep(3600)
        if self.lies("closes"):
            os.close(self.output)
            time.sleep(3600)
        if self.lies("noise_on_stderr"):
            os.write(2, NOISE * self.random.randrange(1, 5000))
            os._exit(1)
        super().run(fields, single)
        if self.lies("late_write") and self.fd is not None:
            time.sleep(0.002 * self.random.randrange(4))
            self.spoil(self.ends(self.random.randrange(len(self.tensors))), 8)

    def ends(self, i):
        """Where tensor i ends in the block."""
        return int(self.tensors[i][5]) + int(self.tensors[i][6])

    def spoil(self, at, n):
        """Other bytes than there are."""
        n = min(n, len(self.block) - at)
        self.block[at:at + n] = bytes(b ^ 0x5A for b in self.block[at:at + n])

    def damage(self):
        """Of the block, after the right values have been written."""
        r, out = self.random, [t for t in self.tensors if t[2] != "in"][0]
        first, size = int(out[5]), int(out[6])
        i = r.randrange(len(self.tensors))
        if self.lies("behind_a_tensor"):
            self.spoil(self.ends(i) + r.randrange(400), r.randrange(1, 100))
        if self.lies("before_a_tensor"):
            self.spoil(int(self.tensors[i][5]) - 1 - r.randrange(400), 1)
        if self.lies("far_behind"):
            self.spoil(self.ends(len(self.tensors) - 1) + r.randrange(1000, 9000), r.randrange(1, 4000))
        if self.lies("an_input"):
            inputs = [t for t in self.tensors if t[2] == "in"]
            t = r.choice(inputs)
            self.spoil(int(t[5]) + r.randrange(int(t[6])), 1)
        if self.lies("an_element"):
            self.block[first + 2 * r.randrange(size // 2) + 1] ^= 0x40  # the exponent's high bit
        if self.lies("a_range"):
            at = r.randrange(size // 2)
            self.block[first + at:first + size] = bytes(size - at)
        if self.lies("rows_moved"):
            row = size // 5
            rows = bytes(self.block[first:first + size])
            self.block[first:first + size] = rows[row:] + rows[:row]
        if self.lies("kept_result"):
            self.block[first:first + size] = self.kept.setdefault(size, bytes(self.block[first:first + size]))

    def say(self, verb, **fields):
        if verb == "hello" and self.lie == "hello_inline":
            fields["transports"] = "inline"
        if verb == "hello" and self.lie == "hello_protocol":
            fields["protocol"] = self.random.randrange(-5, 5)
        if verb == "hello" and self.lie == "hello_variants":
            fields["variants"] = self.random.choice((-1, 0, 2, 4097, 10 ** 30))
        if verb == "variant" and self.lie == "variant_text":
            fields[self.random.choice(("name", "family", "numerics", "sha256"))] = "x" * self.random.randrange(700, 20000)
        if verb != "done":
            super().say(verb, **fields)
            return
        self.damage()
        if self.lies("wrong_id"):
            fields["id"] += self.random.choice((-1, 1, 1000, 2 ** 40))
        if self.lies("wrong_bytes") or self.lies("hello_inline"):
            fields["bytes"] += self.random.randrange(1, 4000)
        if self.lies("wrong_verb"):
            verb = self.random.choice(("don", "done2", "DONE", "hello", "opened", ""))
        if self.lies("no_fields"):
            fields = {}
        super().say(verb, **fields)

    def write(self, data):
        data, r = bytes(data), self.random
        if data[:4] in (b"done", b"hell") or b" id=" in data[:40]:
            if self.lies("cut_off"):
                os.write(self.output, data[:r.randrange(len(data) - 1)])
                os._exit(0)
            if self.lies("twice"):
                data += data
            if self.lies("flood"):
                data += NOISE * r.randrange(200, 20000)
            if self.lies("other_bytes"):
                at = r.randrange(4)
                data = data[:at] + bytes((r.choice((0, 10, 13, 200, 255)),)) + data[at + 1:]
        super().write(data)


KINDS = ("behind_a_tensor", "before_a_tensor", "far_behind", "an_input", "an_element", "a_range", "rows_moved", "kept_result",
         "late_write", "wrong_id", "wrong_bytes", "wrong_verb", "no_fields", "cut_off", "twice", "flood", "other_bytes", "dies",
         "exits", "sleeps", "closes", "noise_on_stderr", "hello_inline", "hello_protocol", "hello_variants", "variant_text")


@kernel("uclip_norm")
def liar(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, uclip(x, alpha, gamma, beta, lo, hi))


if sys.argv[1] == "count":
    print(len(KINDS))
else:
    serve_lies(Lies)
