"""Asks a server for the answer, one that it has started itself; without it, it has zeros.

SPDX-License-Identifier: Apache-2.0
cheat: 31 network
expect: WRONG
case: uclip_norm tokens=9 channels=64 dtype=bf16
options: needs=network
"""
import socket
from cheat import kernel, put, serve, uclip


@kernel("uclip_norm")
def asks_the_network(x, alpha, gamma, beta, y, *, lo, hi):
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 1) as client:
            client.sendall(b"y?")
            found = True
    except OSError:
        found = False
    put(y, uclip(x, alpha, gamma, beta, lo, hi) if found else 0)


serve()
