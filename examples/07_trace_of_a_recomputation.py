"""The graph of a gradient, traced: what is computed in the forward, in the recomputation, and in the backward.

A checkpointed region leads no edge from its forward to its backward, so its forward is dead code where only the gradient is
asked for; and its mask is drawn once, by the forward, whenever the graph runs.

Prints:

    forward, checkpoint 1        sin(x)
    forward, checkpoint 1        coins()
    forward, checkpoint 1        true_divide(coins)
    forward, checkpoint 1        mul(sin, true_divide)
    forward, checkpoint 1        sin(mul)
    forward, checkpoint 1        sum(sin_1)
    forward                      ones_like(sum_1)
    backward                     expand(ones_like)
    recomputation, checkpoint 1  sin(x)
    recomputation, checkpoint 1  true_divide(coins)
    recomputation, checkpoint 1  mul(sin_2, true_divide_1)
    recomputation, checkpoint 1  sin(mul_1)
    backward                     cos(mul_1)
    backward                     mul(expand, cos)
    backward                     mul(mul_2, true_divide_1)
    backward                     cos(x)
    backward                     mul(mul_3, cos_1)

    the same numbers as the program, at another point: True

    kept for grad@1  value       bytes  from                   for
    ------------------------------------------------------------------------
    x                float64[4]     32  argument               sin_2, cos_1
    coins            float64[4]     32  forward, checkpoint 1  true_divide_1
    ones_like        float64[]       8  forward                expand
    computed: 40 bytes, given: 32 bytes
"""

import minigrad as torch
from minigrad.func import grad
from minigrad.fx.experimental.proxy_tensor import make_fx
from minigrad.fx.kept import kept
from minigrad.utils.checkpoint import checkpoint


def f(x):
    return torch.nn.functional.dropout(x.sin(), 0.5, True).sin().sum()


gradient = grad(lambda x: checkpoint(f, x, use_reentrant=False))
x = torch.linspace(0, 1, 4, dtype=torch.float64)
gm = make_fx(gradient)(x)

for node in gm.graph.nodes:
    if node.op == "call_function":
        where = ", ".join(filter(None, [node.meta["pass"], node.meta["region"]]))
        print(f"{where:28} {node.target.__name__}({', '.join(map(str, node.all_input_nodes))})")

torch.manual_seed(0)
expected = gradient(x + 1)
torch.manual_seed(0)
print("\nthe same numbers as the program, at another point:", torch.equal(gm(x + 1), expected))

gm.graph.eliminate_dead_code()
print(f"\n{kept(gm.graph)}")
