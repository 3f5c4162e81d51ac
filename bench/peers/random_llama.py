"""Writes a llama with random weights as a Hugging Face folder.

    random_llama.py FOLDER DTYPE [--size 250m|7b] [--layers N]

DTYPE is what weights are stored in, a name of torch. `7b` has the shape of LLaMA-2-7B, in files of at most 5 GB; it is drawn
on a GPU where there is one.
"""

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM

SIZES = {
    "250m": dict(hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16, num_key_value_heads=4),
    "7b": dict(hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("dtype")
    parser.add_argument("--size", choices=SIZES, default="250m")
    parser.add_argument("--layers", type=int, help="fewer than the size has")
    args = parser.parse_args()
    torch.manual_seed(0)
    sizes = dict(SIZES[args.size])
    if args.layers:
        sizes["num_hidden_layers"] = args.layers
    config = LlamaConfig(
        vocab_size=32000, max_position_embeddings=4096, tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
        pad_token_id=None, **sizes,
    )
    dtype = getattr(torch, args.dtype)
    if args.size == "7b":
        torch.set_default_dtype(dtype)
    with torch.device("cuda" if args.size == "7b" and torch.cuda.is_available() else "cpu"):
        model = LlamaForCausalLM(config)
    model.to(dtype).save_pretrained(args.folder, max_shard_size="5GB")
    print('{"written": true}')


if __name__ == "__main__":
    main()
