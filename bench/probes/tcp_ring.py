"""What the network itself takes for the bytes of an all-reduce: every host streams 2(N-1)/N of each size to the next one
while it receives as much from the one before, by plain blocking sockets, and computes nothing.

Usage: tcp_ring.py HOST HOSTS ADDRESS... BYTES...; host 0 prints one JSON object.
"""

import json
import socket
import statistics
import sys
import threading
import time

PORT = 29501
CALLS = 7
PATIENCE_S = 20


def join(host, hosts, addresses):
    """The socket to send on and the one to receive from."""
    listener = socket.create_server((addresses[host], PORT))
    listener.settimeout(PATIENCE_S)
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            after = socket.create_connection((addresses[(host + 1) % hosts], PORT), timeout=PATIENCE_S)
            break
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
    before, _ = listener.accept()
    before.settimeout(PATIENCE_S)
    return after, before


def receive(source, count, buffer):
    while count > 0:
        got = source.recv_into(buffer, min(count, len(buffer)))
        if got == 0:
            raise ConnectionError("the host before this one has gone")
        count -= got


def call(after, before, data, buffer):
    start = time.perf_counter()
    sender = threading.Thread(target=after.sendall, args=(data,))
    sender.start()
    receive(before, len(data), buffer)
    sender.join()
    return time.perf_counter() - start


def main():
    host, hosts = int(sys.argv[1]), int(sys.argv[2])
    addresses, sizes = sys.argv[3 : 3 + hosts], [int(size) for size in sys.argv[3 + hosts :]]
    after, before = join(host, hosts, addresses)
    buffer = bytearray(1 << 20)
    rows = []
    for size in sizes:
        data = memoryview(bytes(2 * (hosts - 1) * size // hosts))
        call(after, before, data, buffer)
        rows.append({"bytes": size, "time_us": 1e6 * statistics.median(call(after, before, data, buffer) for _ in range(CALLS))})
    if host == 0:
        print(json.dumps({"workers": hosts, "sizes": rows}))


if __name__ == "__main__":
    main()
