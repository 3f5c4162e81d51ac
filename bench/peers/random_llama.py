"""Writes a llama of about 250 million parameters with random weights as a Hugging Face folder.

Arguments: the folder, and the type that weights are stored in."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def main():
    folder, dtype = sys.argv[1], getattr(torch, sys.argv[2])
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16,
        num_key_value_heads=4, max_position_embeddings=4096, tie_word_embeddings=False, bos_token_id=None,
        eos_token_id=None, pad_token_id=None,
    )
    LlamaForCausalLM(config).to(dtype).save_pretrained(folder)
    print('{"written": true}')


if __name__ == "__main__":
    main()
