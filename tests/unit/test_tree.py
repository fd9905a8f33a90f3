"""minigrad/tree.py"""

from collections import OrderedDict
from typing import NamedTuple

import pytest

from minigrad import tree
from minigrad.errors import UsageError


class Point(NamedTuple):
    x: int
    y: object


NESTS = [1, (), [], {}, (1, 2), [1, [2, 3]], {"b": 1, "a": (2, 3)}, Point(1, (2,)), OrderedDict(z=1, a=[2]), (None, {"k": ()})]


@pytest.mark.parametrize("nest", NESTS, ids=repr)
def test_unflatten_undoes_flatten(nest):
    leaves, spec = tree.flatten(nest)
    back = tree.unflatten(leaves, spec)
    assert back == nest
    assert type(back) is type(nest)


def test_leaves_come_in_order():
    assert tree.leaves_of({"b": [1, 2], "a": (3, {"c": 4})}) == [1, 2, 3, 4]


def test_none_is_a_leaf():
    assert tree.leaves_of((None, 1)) == [None, 1]


def test_specs_are_equal_where_the_shapes_are():
    assert tree.flatten((1, [2]))[1] == tree.flatten((3, [4]))[1]
    assert tree.flatten((1, [2]))[1] != tree.flatten((1, (2,)))[1]
    assert tree.flatten({"a": 1})[1] != tree.flatten({"b": 1})[1]


def test_equal_specs_hash_alike():
    assert hash(tree.flatten((1, [2]))[1]) == hash(tree.flatten((3, [4]))[1])


def test_a_spec_draws_itself():
    assert repr(tree.flatten((1, [2]))[1]) == "tuple(*, list(*))"


def test_map_keeps_the_shape():
    assert tree.map(lambda x: x * 2, {"a": (1, 2), "b": 3}) == {"a": (2, 4), "b": 6}


def test_map_of_several_trees():
    assert tree.map(lambda x, y: x + y, (1, [2]), (10, [20])) == (11, [22])


def test_a_prefix_stands_for_a_subtree():
    assert tree.broadcast((0, None), (1, {"a": 2, "b": (3, 4)}), "in_dims") == [0, None, None, None]


def test_a_prefix_of_a_dict_is_found_by_key():
    assert tree.broadcast({"b": 1, "a": 0}, {"a": "x", "b": "y"}, "in_dims") == [0, 1]


@pytest.mark.parametrize("prefix", [(0, 1, 2), ((0, 1), 0), ({"c": 0}, 0)], ids=repr)
def test_a_prefix_that_does_not_fit_is_an_error(prefix):
    with pytest.raises(UsageError, match="in_dims"):
        tree.broadcast(prefix, (1, {"a": 2}), "in_dims")
