"""Graphs and graph modules by hand: names, edges, code, and what comes back from code."""

from __future__ import annotations

import pickle
from math import inf

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.errors import Refusal, UsageError
from minigrad.fx import Graph, GraphModule, rows
from minigrad.fx.code import text
from minigrad.fx.experimental.proxy_tensor import make_fx
from minigrad.fx.kept import kept
from minigrad.fx.node import map_nodes
from minigrad.row import row


def module_of(*, target=rows.sin):
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(target, (x,)))
    return GraphModule({}, graph)


def double(x):
    return x * 2


# ---------------------------------------------------------------- graphs
def test_names_are_distinct_and_shadow_nothing():
    graph = Graph()
    names = [graph.placeholder(name).name for name in ("x", "x", "sum", "rows", "1st", "a-b", "class", "x_1")]
    assert names == ["x", "x_1", "sum_1", "rows_1", "_1st", "a_b", "class_1", "x_1_1"]
    assert all(name.isidentifier() for name in names)


def test_edges_follow_the_arguments():
    graph = Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    node = graph.call_function(rows.cat, (a, [b, {"k": a}]), {"dim": 0})
    assert node.all_input_nodes == [a, b]
    assert list(a.users) == list(b.users) == [node]
    node.args = (b,)
    assert not a.users
    node.kwargs = {"dim": a}
    assert node.all_input_nodes == [b, a]
    assert a.replace_all_uses_with(b) == [node]
    assert node.kwargs == {"dim": b}
    assert map_nodes(slice(1), repr) == slice(1)


def test_a_node_knows_its_graph_while_that_lives(no_gc):
    graph = Graph()
    node = graph.placeholder("x")
    assert node.graph is graph
    del graph
    with pytest.raises(ReferenceError, match="the graph of node x has gone"):
        _ = node.graph


def test_a_node_that_is_taken_is_not_erased():
    graph = module_of().graph
    x, sin, output = graph.nodes
    with pytest.raises(UsageError, match="Tried to erase Node sin but it still had 1 users"):
        graph.erase_node(sin)
    graph.erase_node(output)
    graph.erase_node(sin)
    assert list(graph.nodes) == [x]
    assert not x.users


def test_dead_code_goes_and_draws_stay():
    graph = Graph()
    x = graph.placeholder("x")
    dead = graph.call_function(rows.sin, (graph.call_function(rows.cos, (x,)),))
    drawn = graph.call_function(rows.uniform, (), {"shape": (2,), "dtype": mg.float32, "device": mg.device("cpu"),
                                                   "generator": mg.default_generator, "low": 0, "high": 1})
    written = graph.call_method("copy_", (x, x))
    graph.output(x)
    assert graph.eliminate_dead_code(is_impure_node=lambda node: node is dead or node.is_impure()) is False
    assert graph.eliminate_dead_code() is True
    assert [node.name for node in graph.nodes] == ["x", drawn.name, written.name, "output"]
    assert graph.eliminate_dead_code() is False


def test_lint_finds_what_is_taken_before_it_is_there():
    graph = module_of().graph
    x, sin, _ = graph.nodes
    graph.lint()
    with graph.inserting_before(x):
        early = graph.call_function(rows.sin, (sin,))
    with pytest.raises(UsageError, match="Argument 'sin' of Node 'sin_1' was used before it has been defined"):
        graph.lint()
    graph.erase_node(early)
    sin.name = "x"
    with pytest.raises(UsageError, match="one name"):
        graph.lint()


def test_an_op_is_one_of_five():
    with pytest.raises(UsageError, match="invalid node op 'call'"):
        Graph().create_node("call", "x")


def test_a_graph_prints_as_lines_and_as_a_table(capsys):
    gm = make_fx(mg.sin)(mg.ones(2))
    lines = str(gm.graph).splitlines()
    assert lines == ["graph():", "    %x : [num_users=1] = placeholder[target=x]",
                     "    %sin : [num_users=1] = call_function[target=rows.sin](x)", "    return sin"]
    gm.graph.print_tabular()
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["op", "name", "target", "args", "kwargs", "level", "pass", "region"]
    assert table[2].split()[-3:] == ["level", "0", "forward"]


# ---------------------------------------------------------------- code
def test_constants_are_written_down():
    for value, written in (((1, [2.5, None]), "(1, [2.5, None])"), ((inf,), "(inf,)"), (slice(None, 2), "slice(None, 2, None)"),
                           ({"a": mg.bool}, "{'a': minigrad.bool}"), (mg.device("cpu"), "minigrad.device('cpu')"),
                           (Ellipsis, "Ellipsis"), (mg.channels_last, "minigrad.channels_last"), (1 + 2j, "(1+2j)"),
                           (mg.default_generator, "minigrad.default_generator"), (rows.max_all, "rows.max_all")):
        assert text(value) == written


def test_a_module_prints_as_the_code_that_it_runs(capsys):
    gm = module_of()
    assert gm.code == "def forward(self, x):\n    sin = rows.sin(x)\n    return sin\n"
    assert str(gm).endswith(gm.code)
    shown = gm.print_readable()
    assert capsys.readouterr().out.strip() == shown.strip()
    assert shown.startswith("class GraphModule(minigrad.nn.Module):\n    def forward(self, x):")


def test_an_argument_whose_name_means_something_is_renamed_inside():
    gm = make_fx(lambda input: input.sin())(mg.ones(2))  # noqa: A006
    assert "def forward(self, input):\n    input_1 = input\n" in gm.code
    assert gm(input=mg.zeros(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("target", [rows.sin, mg.sin, double], ids=["row", "function of a row", "any function"])
def test_what_is_called_comes_back_from_code(target):
    gm = module_of(target=target)
    again = pickle.loads(pickle.dumps(gm))
    assert again(mg.ones(2)).tolist() == gm(mg.ones(2)).tolist() == target(mg.ones(2)).tolist()
    assert again.code == gm.code


def test_a_module_is_pickled_with_its_parameters_and_nests():
    layer = nn.Linear(2, 2)
    gm = make_fx(lambda pair: {"out": layer(pair[0]), "all": tuple(pair[1].max(0))})((mg.ones(2), mg.ones(3)))
    assert [name for name, _ in gm.named_parameters()] == ["_param_constant0", "_param_constant1"]
    again = pickle.loads(pickle.dumps(gm))
    given = mg.zeros(2), mg.tensor([1.0, 3.0, 2.0])
    out = again(given)
    assert out["out"].tolist() == layer.bias.tolist()
    assert [x.item() for x in out["all"]] == [3.0, 1]
    with pytest.raises(ValueError, match="too many values to unpack"):
        again((*given, given[0]))


def test_a_row_of_ones_own_is_traced_and_not_kept_as_code():
    own = row("own", lambda xp, x0: x0 + 1, vjp=(lambda ct: ct,), jvp="linear", batch=lambda op, size, v, b, p: (op.call(*v), b[0]))
    gm = make_fx(own)(mg.zeros(2))
    assert gm(mg.zeros(2)).tolist() == [1.0, 1.0]
    assert "rows.own(arg0)" in gm.code


def test_there_is_no_row_of_any_name():
    with pytest.raises(AttributeError, match="there is no row 'no_such_row'"):
        _ = rows.no_such_row


def test_make_fx_traces_real_tensors_only():
    for options in ({"tracing_mode": "symbolic"}, {"decomposition_table": {1: 2}}):
        with pytest.raises(Refusal, match="make_fx traces real tensors"):
            make_fx(mg.sin, **options)


def test_a_graph_without_a_backward_keeps_nothing():
    assert str(kept(make_fx(mg.sin)(mg.ones(2)).graph)) == "nothing is run backward"
