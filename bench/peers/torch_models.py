"""The reference models in PyTorch, written as one would write them to run fast there.

Every model is fp32, without dropout, and maps a batch (a tuple of tensors) to a scalar loss, so that training
needs only `model(*batch).backward()`. `build(args)` returns a model and its seeded synthetic batch.

Shape letters: B batch, T sequence, C width, V vocabulary, H heads.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class SelfAttention(nn.Module):
    def __init__(self, C, H, causal):
        super().__init__()
        self.heads = H
        self.causal = causal
        self.qkv = nn.Linear(C, 3 * C)
        self.proj = nn.Linear(C, C)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class FeedForward(nn.Module):
    def __init__(self, C, approximate):
        super().__init__()
        self.up = nn.Linear(C, 4 * C)
        self.down = nn.Linear(4 * C, C)
        self.approximate = approximate

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate=self.approximate))


class PreNormBlock(nn.Module):
    def __init__(self, C, H):
        super().__init__()
        self.attention_norm = nn.LayerNorm(C)
        self.attention = SelfAttention(C, H, causal=True)
        self.mlp_norm = nn.LayerNorm(C)
        self.mlp = FeedForward(C, "tanh")

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.mlp(self.mlp_norm(x))


class PostNormBlock(nn.Module):
    def __init__(self, C, H):
        super().__init__()
        self.attention = SelfAttention(C, H, causal=False)
        self.attention_norm = nn.LayerNorm(C, eps=1e-12)
        self.mlp = FeedForward(C, "none")
        self.mlp_norm = nn.LayerNorm(C, eps=1e-12)

    def forward(self, x):
        x = self.attention_norm(x + self.attention(x))
        return self.mlp_norm(x + self.mlp(x))


def init_transformer(module):
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


class Gpt(nn.Module):
    """GPT-2: learned positions, pre-norm, tied head. The position table holds exactly T rows."""

    def __init__(self, layers, C, H, V, T):
        super().__init__()
        self.tokens = nn.Embedding(V, C)
        self.positions = nn.Embedding(T, C)
        self.blocks = nn.ModuleList(PreNormBlock(C, H) for _ in range(layers))
        self.norm = nn.LayerNorm(C)
        self.apply(init_transformer)

    def forward(self, inputs, targets):
        x = self.tokens(inputs) + self.positions.weight[: inputs.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Rotary(nn.Module):
    """Rotary positions: element i of a head turns with element i + D/2."""

    def __init__(self, T, D, theta):
        super().__init__()
        angles = torch.outer(torch.arange(T).float(), 1.0 / theta ** (torch.arange(0, D, 2).float() / D))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x):
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * self.cos - second * self.sin, second * self.cos + first * self.sin], dim=-1)


class GroupedAttention(nn.Module):
    def __init__(self, C, H, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.width = H, kv_heads, C // H
        self.qkv = nn.Linear(C, (H + 2 * kv_heads) * self.width, bias=False)
        self.proj = nn.Linear(C, C, bias=False)

    def forward(self, x, rotary):
        B, T, C = x.shape
        heads = self.qkv(x).view(B, T, self.heads + 2 * self.kv_heads, self.width).transpose(1, 2)
        q, k, v = heads.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        y = F.scaled_dot_product_attention(rotary(q), rotary(k), v, is_causal=True, enable_gqa=self.kv_heads != self.heads)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class GatedBlock(nn.Module):
    def __init__(self, C, H, kv_heads, hidden):
        super().__init__()
        self.attention_norm = nn.RMSNorm(C, eps=1e-5)
        self.attention = GroupedAttention(C, H, kv_heads)
        self.mlp_norm = nn.RMSNorm(C, eps=1e-5)
        self.gate_up = nn.Linear(C, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, C, bias=False)

    def forward(self, x, rotary):
        x = x + self.attention(self.attention_norm(x), rotary)
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    """LLaMA: rotary positions, grouped key heads, gated MLP, no biases, a head of its own."""

    def __init__(self, layers, C, H, kv_heads, hidden, V, T):
        super().__init__()
        self.tokens = nn.Embedding(V, C)
        self.rotary = Rotary(T, C // H, 10000.0)
        self.blocks = nn.ModuleList(GatedBlock(C, H, kv_heads, hidden) for _ in range(layers))
        self.norm = nn.RMSNorm(C, eps=1e-5)
        self.head = nn.Linear(C, V, bias=False)
        self.apply(init_transformer)

    def forward(self, inputs, targets):
        x = self.tokens(inputs)
        for block in self.blocks:
            x = block(x, self.rotary)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class Encoder(nn.Module):
    """BERT: post-norm, exact gelu, pooler and a two-class head on the first token."""

    def __init__(self, layers, C, H, V, T):
        super().__init__()
        self.tokens = nn.Embedding(V, C)
        self.positions = nn.Embedding(T, C)
        self.segments = nn.Embedding(2, C)
        self.norm = nn.LayerNorm(C, eps=1e-12)
        self.blocks = nn.ModuleList(PostNormBlock(C, H) for _ in range(layers))
        self.pooler = nn.Linear(C, C)
        self.head = nn.Linear(C, 2)
        self.apply(init_transformer)

    def forward(self, inputs, segments, labels):
        x = self.tokens(inputs) + self.positions.weight[: inputs.shape[1]] + self.segments(segments)
        x = self.norm(x)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(torch.tanh(self.pooler(x[:, 0]))), labels)


def mlp(*widths):
    layers = []
    for fan_in, fan_out in zip(widths, widths[1:]):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return layers


class Tabular(nn.Module):
    """DLRM: the tables lie in one weight so that a batch is one lookup; gradients are dense."""

    def __init__(self, tables, rows, C, dense_features):
        super().__init__()
        vectors = tables + 1
        self.tables = nn.Embedding(tables * rows, C)
        nn.init.uniform_(self.tables.weight, -(rows**-0.5), rows**-0.5)
        self.bottom = nn.Sequential(*mlp(dense_features, 512, 256, C))
        pairs = vectors * (vectors - 1) // 2
        self.top = nn.Sequential(*mlp(C + pairs, 512, 256), nn.Linear(256, 1))
        below = torch.tril_indices(vectors, vectors, offset=-1)
        self.register_buffer("pairs", below[0] * vectors + below[1])
        self.register_buffer("offsets", torch.arange(tables) * rows)

    def forward(self, dense, categories, labels):
        bottom = self.bottom(dense)
        vectors = torch.cat([bottom.unsqueeze(1), self.tables(categories + self.offsets)], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        interactions = products.index_select(1, self.pairs)
        logits = self.top(torch.cat([bottom, interactions], dim=1)).squeeze(1)
        return F.binary_cross_entropy_with_logits(logits, labels)


def conv(fan_in, fan_out, size, stride=1):
    return nn.Conv2d(fan_in, fan_out, size, stride, padding=size // 2, bias=False)


class Residual(nn.Module):
    """The two-convolution block, or the bottleneck of three whose stride is on the 3x3 one."""

    def __init__(self, fan_in, width, stride, bottleneck):
        super().__init__()
        fan_out = 4 * width if bottleneck else width
        if bottleneck:
            shapes = [(fan_in, width, 1, 1), (width, width, 3, stride), (width, fan_out, 1, 1)]
        else:
            shapes = [(fan_in, width, 3, stride), (width, width, 3, 1)]
        layers = []
        for shape in shapes:
            layers += [conv(*shape), nn.BatchNorm2d(shape[1]), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*layers[:-1])
        self.shortcut = nn.Identity()
        if stride != 1 or fan_in != fan_out:
            self.shortcut = nn.Sequential(conv(fan_in, fan_out, 1, stride), nn.BatchNorm2d(fan_out))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


class ResNet(nn.Module):
    def __init__(self, depths, bottleneck, classes):
        super().__init__()
        self.stem = nn.Sequential(
            conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)
        )
        blocks = []
        fan_in = 64
        for stage, depth in enumerate(depths):
            width = 64 << stage
            for index in range(depth):
                stride = 2 if stage > 0 and index == 0 else 1
                blocks.append(Residual(fan_in, width, stride, bottleneck))
                fan_in = 4 * width if bottleneck else width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(fan_in, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images, labels):
        x = self.blocks(self.stem(images))
        return F.cross_entropy(self.head(x.mean(dim=(2, 3))), labels)


def build_gpt(args):
    tokens = torch.randint(args.vocab, (args.batch, args.seq + 1))
    model = Gpt(args.layers, args.dim, args.heads, args.vocab, args.seq)
    return model, (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())


def build_llama(args):
    tokens = torch.randint(args.vocab, (args.batch, args.seq + 1))
    model = Llama(args.layers, args.dim, args.heads, args.kv_heads, args.hidden, args.vocab, args.seq)
    return model, (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())


def build_encoder(args):
    tokens = torch.randint(args.vocab, (args.batch, args.seq))
    segments = (torch.arange(args.seq) >= args.seq // 2).long().expand(args.batch, -1).contiguous()
    model = Encoder(args.layers, args.dim, args.heads, args.vocab, args.seq)
    return model, (tokens, segments, torch.randint(2, (args.batch,)))


def build_tabular(args):
    categories = torch.randint(args.rows, (args.batch, args.tables))
    labels = torch.randint(2, (args.batch,)).float()
    model = Tabular(args.tables, args.rows, args.dim, dense_features=13)
    return model, (torch.randn(args.batch, 13), categories, labels)


def build_resnet(args):
    depths, bottleneck = {"resnet18": ([2, 2, 2, 2], False), "resnet50": ([3, 4, 6, 3], True)}[args.model]
    model = ResNet(depths, bottleneck, classes=1000)
    images = torch.randn(args.batch, 3, args.image, args.image)
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    return model, (images, torch.randint(1000, (args.batch,)))


BUILDERS = {
    "gpt": build_gpt,
    "llama": build_llama,
    "encoder": build_encoder,
    "tabular": build_tabular,
    "resnet18": build_resnet,
    "resnet50": build_resnet,
}


def build(args):
    torch.manual_seed(args.seed)
    return BUILDERS[args.model](args)
