"""Captures of odd sizes and values, for tests/cli/test_record_odd.sh.
SPDX-License-Identifier: Apache-2.0

    python3 odd_captures.py FOLDER HEADS

Writes FOLDER/NAME.safetensors; each has one layer, and two query heads that share a key/value head where NAME does not say
otherwise; wide has HEADS heads. Needs numpy.
"""
import os
import sys

import numpy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import drift_captures

RANDOM = numpy.random.default_rng(3)


def capture(queries, keys, h=2, hk=1, d=4, fill=None, prefix="layers.0.", kind=numpy.float16, **starts):
    """Tensors of one layer; starts: query_start, key_start."""
    def values(*shape):
        return numpy.full(shape, fill, kind) if fill is not None else RANDOM.normal(0, 1, shape).astype(kind)
    made = {prefix + "q": values(queries, h, d), prefix + "k": values(keys, hk, d), prefix + "v": values(keys, hk, d)}
    return dict(made, **{name: numpy.int32(x) for name, x in starts.items()})


def main():
    made = {
        "least": capture(1, 1, 1, 1, 1),
        "no_keys": capture(3, 0),
        "no_queries": capture(0, 3),
        "nothing": capture(0, 0, query_start=[0, 0, 0]),
        "empty_requests": capture(5, 5, query_start=[0, 0, 2, 2, 5, 5]),
        "request_without_keys": capture(4, 4, query_start=[0, 2, 4], key_start=[0, 0, 4]),
        "more_queries": capture(10, 3),
        "nan": capture(6, 6, fill=numpy.nan),
        "inf": capture(6, 6, fill=numpy.inf),
        "zero": capture(6, 6, fill=0),
        "huge": capture(6, 6, fill=3e38, kind=numpy.float32),
        "last_layer": capture(4, 4, prefix="layers.2147483647."),
        "beyond_layer": capture(4, 4, prefix="layers.2147483648."),
        "padded_layer": dict(capture(4, 4), **capture(4, 4, prefix="layers.01.")),
        "no_layer": dict(capture(4, 4), **{"layers.x.q": numpy.float16([1])}),
        "wide": capture(2, 2, int(sys.argv[2]), 1, 1),
    }
    # one head of NaN beside one of numbers
    made["half_nan"] = capture(6, 6)
    made["half_nan"]["layers.0.q"][:, 0] = numpy.nan
    # other files of one name: other values behind the same sizes, other requests of the same values
    made["other_requests"] = capture(5, 5, query_start=[0, 0, 2, 2, 5, 5])
    made["starts_requests"] = dict(made["empty_requests"], query_start=numpy.int32([0, 1, 2, 2, 5, 5]))
    for name, tensors in made.items():
        drift_captures.write("%s/%s.safetensors" % (sys.argv[1], name), tensors)


if __name__ == "__main__":
    main()
