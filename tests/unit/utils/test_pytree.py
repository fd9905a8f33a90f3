"""minigrad/utils/_pytree.py: torch's names for nests of tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
import torch.utils._pytree as torch_pytree

import minigrad
from minigrad.utils import _pytree

LIBRARIES = pytest.mark.parametrize("pytree", [_pytree, torch_pytree], ids=["minigrad", "torch"])


class Pair(NamedTuple):
    x: Any
    y: Any


NEST = {"b": [1, (2, None)], "a": Pair(3, {"c": 4})}


@LIBRARIES
def test_a_nest_is_a_list_of_leaves_and_a_structure(pytree):
    leaves, spec = pytree.tree_flatten(NEST)
    assert leaves == pytree.tree_leaves(NEST) == [1, 2, None, 3, 4]
    assert spec == pytree.tree_structure(NEST)
    assert isinstance(spec, pytree.TreeSpec)
    assert pytree.tree_unflatten(leaves, spec) == NEST


@LIBRARIES
@pytest.mark.parametrize("leaves", [[1], [1, 2, 3]], ids=["fewer", "more"])
def test_leaves_that_a_structure_has_no_place_for_are_refused(pytree, leaves):
    with pytest.raises(ValueError, match="leaves"):
        pytree.tree_unflatten(leaves, pytree.tree_structure((0, 0)))


@LIBRARIES
def test_a_function_is_applied_to_leaves_at_the_same_places(pytree):
    assert pytree.tree_map(lambda x, y: x + y, [1, {"a": 2}], [10, {"a": 20}]) == [11, {"a": 22}]
    assert pytree.tree_map_only(str, str.upper, ["a", (1, "b")]) == ["A", (1, "B")]


@LIBRARIES
def test_what_stands_at_the_place_of_a_leaf_may_be_a_nest(pytree):
    assert pytree.tree_map(lambda x, y: (x, y), [1, {"a": 2}], [3, {"a": [4, 5]}]) == [(1, 3), {"a": (2, [4, 5])}]


@LIBRARIES
@pytest.mark.parametrize("other", [[1], (1, {"a": 2}), [1, {"b": 2}], [1, 2]], ids=str)
def test_trees_of_another_structure_are_refused(pytree, other):
    with pytest.raises(ValueError):
        pytree.tree_map(lambda x, y: x, [1, {"a": 2}], other)


@pytest.mark.parametrize(("library", "pytree"), [(minigrad, _pytree), (torch, torch_pytree)], ids=["minigrad", "torch"])
def test_gradients_of_a_list_of_parameters_take_a_step(library, pytree):
    net = library.nn.Linear(1, 1)
    params = {name: p.detach().fill_(1.0) for name, p in net.named_parameters()}
    grads = library.func.grad(lambda p: library.func.functional_call(net, p, library.ones(1, 1)).sum())(params)
    leaves, spec = pytree.tree_flatten(params)
    after = pytree.tree_unflatten([p - 0.5 * g for p, g in zip(leaves, pytree.tree_leaves(grads), strict=True)], spec)
    assert {name: p.reshape(()).item() for name, p in after.items()} == {"weight": 0.5, "bias": 0.5}
