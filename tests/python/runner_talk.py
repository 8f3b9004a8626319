"""Speaks the runner protocol with a runner, line by line: what attest never sends, and what it sends only now and then.

SPDX-License-Identifier: Apache-2.0

Usage: runner_talk.py RUNNER...
"""
import re
import signal
import subprocess
import sys
import time

import numpy as np

JOB = ("job id=%d variant=%d op=uclip_norm dtype=f32 memory=0 used=1280 timeout=%s size.tokens=1 size.channels=4 param.lo=-0x1p+0 "
       "param.hi=0x1p+0 later=1 tensor=0:x:in:%s:1,4:0:16 tensor=1:alpha:in:f32:4:256:16 tensor=2:gamma:in:f32:4:512:16 "
       "tensor=3:beta:in:f32:4:768:16 tensor=4:y:out:f32:1,4:1024:16%s\n")


class Talk:
    """One conversation."""

    def __init__(self):
        self.child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.greeting = list(iter(self.line, "ready"))

    def line(self):
        """What the runner says next."""
        return self.child.stdout.readline().decode().rstrip("\n")

    def say(self, text, data=b""):
        """A line, bytes behind it."""
        self.child.stdin.write(text.encode() + data)
        self.child.stdin.flush()

    def send(self, number, name="right", timeout="0x1.4p+3", kind="f32", more=""):
        """A job: x = 0 0.5 1 2 with slope, factor and shift 1."""
        variant = [i for i, line in enumerate(self.greeting[1:]) if re.search(r" name=\d\d_%s " % name, line)][0]
        block = np.zeros(320, np.float32)
        block[0:4], block[64:68], block[128:132], block[192:196] = [0, 0.5, 1, 2], 1, 1, 1
        self.say(JOB % (number, variant, timeout, kind, more), block.tobytes())

    def job(self, number, **options):
        """The reply and what y is."""
        self.send(number, **options)
        reply = self.line()
        y = np.frombuffer(self.child.stdout.read(1280), np.float32)[256:260].tolist() if reply.startswith("done") else None
        return reply, y

    def end(self, want):
        """It ends by itself, with this status."""
        got = self.child.wait(20)
        must(got == want, "exit %d, wanted %d" % (got, want))


def must(good, text):
    """A check."""
    if not good:
        sys.exit("FAIL: " + text)


def opened(text="open protocol=5 transport=inline\n", want="opened transport=inline"):
    """A conversation up to the transport."""
    talk = Talk()
    talk.say(text)
    said = talk.line()
    must(said.startswith(want), "%r was answered %r" % (text, said))
    return talk


signal.alarm(60)  # a runner that owes a word is not waited for
talk = opened()
must(talk.greeting[0].startswith("hello protocol=5 "), talk.greeting[0])
must("numerics=free_order%3D1" in talk.greeting[1] and "name=01_right" in talk.greeting[1], talk.greeting[1])
reply, y = talk.job(0)
must(reply.startswith("done id=0 ") and reply.endswith(" bytes=1280") and y == [1, 1.5, 2, 2], "%s %s" % (reply, y))
reply, _ = talk.job(1, kind="f8_e8m0")
must(reply == "unsupported id=1 reason=tensor%20x%20is%20of%20format%20f8_e8m0,%20which%20this%20runner%20does%20not%20know", reply)
reply, _ = talk.job(2, more=" timings=3")
must(reply.startswith("unsupported id=2 "), reply)
reply, y = talk.job(6, name="times")
must(reply.startswith("done id=6 ") and "cold" not in reply and y == [0, 0, 0, 0], "%s %s" % (reply, y))
reply, _ = talk.job(7, name="times", more=" timings=3")
must(reply.endswith(" replays=3 copies=4 cold=%s hot=%s copy_rate=%s" % tuple(x.hex() for x in (3e-6, 2e-6, 4e12))), reply)
reply, _ = talk.job(8, name="times_nothing", more=" timings=3")
must(reply.startswith("failed id=8 ") and "wanted%20a%20dict%20of%20replays" in reply, reply)
reply, y = talk.job(3, more=" ask=1 order=2 counters=1")
must(reply.startswith("done id=3 ") and y == [1, 1.5, 2, 2], "%s %s" % (reply, y))
reply, _ = talk.job(5, more=" tensor=5:z:out:f32:1:1040:4")
must(reply.startswith("failed id=5 ") and "does%20not%20take%20z" in reply, reply)
talk.say("quit\n")
talk.end(0)

opened("open protocol=5 transport=memfd fd=99 memory=4096 nonce=8d1f0c5a3be94476a2b0d6e7c8f91503\n", "refused").child.kill()
for text in ("jog id=1\n", "job id=1\n", "nonsense\n"):
    talk = opened()
    talk.say(text)
    said = talk.line()
    must(said.startswith("error reason="), "%r was answered %r" % (text, said))
    talk.end(3)

# attest is gone in the middle of a job, and nobody waits for the function any more; and a job that is long past its limit
for timeout, status in (("0x1.4p+3", 0), ("-0x1.2p+2", -signal.SIGALRM)):
    talk = opened()
    start = time.monotonic()
    talk.send(0, "sleeps", timeout)
    if status == 0:
        talk.child.stdin.close()
    talk.end(status)
    must(time.monotonic() - start < 15, "it went on for %g s" % (time.monotonic() - start))
print("as the protocol has it")
