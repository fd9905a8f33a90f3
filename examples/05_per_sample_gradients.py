"""vmap of grad of an MLP with checkpointed blocks: the gradients of all samples at once, and each block runs twice in all.

Prints:

    one by one       runs of a block: 30
    all at once      runs of a block: 6
    layers.0.weight  (5, 8, 3)  equal: True
    layers.0.bias    (5, 8)     equal: True
    layers.1.weight  (5, 8, 8)  equal: True
    layers.1.bias    (5, 8)     equal: True
    layers.2.weight  (5, 1, 8)  equal: True
    layers.2.bias    (5, 1)     equal: True
"""

from itertools import pairwise

import minigrad as torch
from minigrad import nn
from minigrad.func import functional_call, grad, vmap
from minigrad.utils.checkpoint import checkpoint

runs = 0


class MLP(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(m, n, dtype=torch.float64) for m, n in pairwise(sizes)])

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(self.block, layer, x, use_reentrant=False)
        return x

    def block(self, layer, x):
        global runs
        runs += 1
        return layer(x).tanh()


def loss(parameters, x, y):
    return nn.functional.mse_loss(functional_call(mlp, parameters, (x,)), y)


torch.manual_seed(0)
mlp, xs, ys = MLP(3, 8, 8, 1), torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 1, dtype=torch.float64)
parameters = dict(mlp.named_parameters())

loop = [torch.autograd.grad(loss(parameters, x, y), list(parameters.values())) for x, y in zip(xs, ys, strict=True)]
print(f"{'one by one':16} runs of a block: {runs}")

runs = 0
batch = vmap(grad(loss), in_dims=(None, 0, 0))({name: p.detach() for name, p in parameters.items()}, xs, ys)
print(f"{'all at once':16} runs of a block: {runs}")
for (name, gradient), *one_by_one in zip(batch.items(), *loop, strict=True):
    print(f"{name:16} {tuple(gradient.shape)!s:10} equal: {torch.allclose(gradient, torch.stack(one_by_one))}")
