"""Times the matrix products and convolutions of a step as PyTorch's libraries run them, each as one call: MKL's matrix
products and its own oneDNN, which is newer than ours. Beside our oneDNN's times they make the floor of bench/cpu-step.py.

Standard input has the JSON list that `lockstep bench step --floor` gives as `products`; one JSON line comes out, with the
milliseconds of each. The fastest run counts. Images are channels-last, as the graph has them, and as PyTorch likes them
best by default; the faster counts.
"""

import argparse
import json
import sys
import time

import torch

LEAST_RUNS, LEAST_MS = 3, 20


def fastest(run):
    run()
    times = []
    while len(times) < LEAST_RUNS or sum(times) < LEAST_MS:
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return min(times)


def time_matmul(sizes, dtype):
    batch, m, n, k = (sizes[name] for name in ("batch", "m", "n", "k"))

    def matrices(count, rows, columns, transposed):
        shape = [count] * (batch > 1) + ([columns, rows] if transposed else [rows, columns])
        values = torch.rand(shape).to(dtype)
        return values.transpose(-1, -2) if transposed else values

    a = matrices(batch, m, k, sizes["transpose_a"])
    b = matrices(1 if sizes["one_b"] else batch, k, n, sizes["transpose_b"])
    c = matrices(batch, m, n, False)
    if batch == 1:
        return fastest((lambda: c.addmm_(a, b)) if sizes["accumulate"] else (lambda: torch.mm(a, b, out=c)))
    b = b.expand(batch, -1, -1)
    return fastest((lambda: c.baddbmm_(a, b)) if sizes["accumulate"] else (lambda: torch.bmm(a, b, out=c)))


def time_conv(op, sizes, dtype, layout):
    pairs = {name: [sizes[f"{name}_rows"], sizes[f"{name}_columns"]] for name in ("stride", "pad", "dilation")}
    settings = [pairs["stride"], pairs["pad"], pairs["dilation"], False, [0, 0], sizes["groups"]]
    images = torch.rand(sizes["batch"], sizes["channels"], sizes["rows"], sizes["columns"])
    filters = torch.rand(
        sizes["outputs"], sizes["channels"] // sizes["groups"], sizes["kernel_rows"], sizes["kernel_columns"]
    )
    images, filters = (values.to(dtype, memory_format=layout) for values in (images, filters))
    forward = lambda: torch.ops.aten.convolution(images, filters, None, *settings)  # noqa: E731
    if op == "conv2d":
        return fastest(forward)
    results = torch.rand_like(forward())
    wanted = [op == "conv2d_grad_input", op == "conv2d_grad_filter", False]
    backward = torch.ops.aten.convolution_backward
    return fastest(lambda: backward(results, images, filters, None, *settings, wanted))


def time_product(product):
    op, sizes = product["op"], product["sizes"]
    dtype = torch.bfloat16 if sizes["bf16"] else torch.float32
    if op == "matmul":
        return time_matmul(sizes, dtype)
    return min(time_conv(op, sizes, dtype, layout) for layout in (torch.channels_last, torch.contiguous_format))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with torch.inference_mode():
        print(json.dumps({"ms": [time_product(product) for product in json.load(sys.stdin)]}))


if __name__ == "__main__":
    main()
