"""One table says which module may import which: read from top to bottom, it is the architecture."""

import re
from itertools import pairwise

import pytest

from tests.house.sources import MODULES, ROOT, foreign_imports, imports, words

# A module may import what stands above its line; modules of one line know nothing of each other, unless it ends in +.
LAYERS = """
dtypes errors devices.counts lines
backend tree
ops.special ops.elimination
state
scope
devices.streams
devices.pinned
devices.accelerator
devices.simulated devices.gpu devices.meta
storage
inference
tensor
interpreters.base
subclass
modes views
names
methods
graph.node
graph.edge graph.saved
graph.bare graph.raw graph.formula
graph.plan
graph.record
op
row
ops.batching
ops.shape
ops.joining
ops.creation
random
ops.inplace ops.choice ops.pointwise ops.activation ops.indexing ops.scan ops.linalg ops.rearrange ops.layout ops.transfer ops.gather ops.picking ops.reduction ops.extremes ops.norm ops.softmax ops.subscript ops.random ops.normalization ops.loss ops.embedding ops.attention ops.misc ops.naming ops.aten ops.complexes ops.differences ops.distributions ops.forms ops.pairs ops.pieces ops.pixels ops.products ops.ranks ops.bins ops.segments ops.strides ops.triples +
ops.fourier ops.factors ops.definite ops.solving ops.determinants ops.spectra ops.formerly ops.eigen ops.reflections ops.leastsquares ops.lowrank ops.convolution ops.resampling ops.pooling ops.distances ops.grid ops.windows ops.infos ops.frames +
interpreters.duals
interpreters.grad interpreters.jvp interpreters.vmap interpreters.functional
autograd.replaced
autograd.accumulated autograd.descent
autograd.engine autograd.grad_mode autograd.anomaly_mode autograd.variable
autograd.roots
autograd.inference_mode
autograd.lost
autograd.function_node
autograd.combined
autograd.function_call
autograd.function
regions.region offload regions.oplog utils._python_dispatch
regions.recompute regions.reentrant streamed utils.checkpoint_contexts regions.numbering regions.policies
regions.remat regions.selective
utils.checkpoint overrides amp.autocast_mode
amp
autograd.mutation autograd.hooks
autograd.graph
functionalization
arguments
func
autograd.gradients
autograd.gradcheck autograd +
autograd.functional autograd.forward_ad
linalg special fft conversion
operators serialization utils._pytree
nn.reductions nn.noise
nn.ranking
nn.heads nn.sequences
nn.functional
nn.boundary nn.functional_call nn.parameter nn.init nn.members nn.module nn.activations nn.losses nn.layers nn.convolution nn.dropouts nn.pooling nn.margins nn.likelihoods nn.attention nn.containers nn.utils +
nn masked
residuals timeline
memory
sim cuda
_C._functorch
_C _functorch.eager_transforms _vmap_internals
tracing testing
__init__
fx.node
fx.graph fx.rows fx.meta
fx.memory fx.kept
fx.code
fx.tracer fx.graph_module
fx fx.experimental.proxy_tensor +
upstream.private upstream.replaced
upstream.levels upstream.surroundings upstream.effects
upstream.layers
upstream.hooks upstream.captured
upstream.reads upstream.frames upstream.offload
upstream.remat
upstream.checkpoint
upstream
scoreboard.ops scoreboard.judge scoreboard.programs scoreboard.nestings scoreboard.report +
__main__
"""

EMPTY = {"_functorch", "devices", "fx.experimental", "graph", "interpreters", "ops", "regions", "utils", "scoreboard"}
"""Packages that hold nothing of their own."""

LATE = {
    "errors": {"state"},                  # the text of an error ends in the level stack
    "ops.batching": {"ops.shape"},        # shape's rows need the batching rules, which need shape's functions
    "ops.pointwise": {"ops.linalg"},      # the gradient of a product may be one with a vector, whose rows need the arithmetic
    "ops.norm": {"ops.spectra"},          # few programs need singular values, and spectra need norms
    "autograd": {"func"},                 # is_grads_batched is a vmap
    "autograd.gradcheck": {"autograd", "autograd.forward_ad", "func"},  # which has gradcheck among its names
    "autograd.functional": {"func"},
    "func": {"nn.functional_call"},       # torch.func.functional_call lives with the modules
    "backend": {"state", "devices.simulated", "devices.gpu", "devices.meta"},  # a default device is part of the State, and so is a current stream
}
"""What is imported inside functions, against the order, and why."""

KNOWS_NO_TRANSFORM = ["utils.checkpoint", "regions.recompute", "regions.remat", "regions.region", "regions.numbering",
                      "regions.policies", "regions.selective", "offload", "graph.node", "graph.edge", "graph.saved",
                      "graph.bare", "graph.raw", "graph.plan", "graph.record", "autograd.descent", "autograd.engine"]

FROM_OPS = {
    "interpreters.grad": {"ops.inplace": {"assign", "relink"}},
    "interpreters.jvp": {"ops.creation": {"zeros_like"}, "ops.inplace": {"assign", "embedded", "views_of"}},
    "interpreters.duals": {"ops.creation": {"zeros_like"}},
    "interpreters.functional": {"ops.inplace": {"along", "assign", "snapshot", "views_of"}, "ops.shape": {"clone"}},
    "interpreters.vmap": {"ops.batching": {"to_front"}, "ops.inplace": {"assign"}, "ops.shape": {"moveaxis"}},
}
"""What interpreters may take from ops: a zero tangent, moving a batch, and the end of in-place ops; no row."""


def places():
    """module -> (line number, whether the line's modules may import each other)."""
    found = {}
    for line, text in enumerate(LAYERS.strip().splitlines()):
        for module in text.removesuffix("+").split():
            assert module not in found, f"{module} stands twice in the table"
            found[module] = line, text.endswith("+")
    return found


PLACES = places()


def shown():
    """The lines of the block in docs/reading.md, as modules; `nn/*` is the package and what is in it that no line names."""
    block = (ROOT / "docs" / "reading.md").read_text().partition("## Layers of the house")[2].split("```")[1]
    lines = [re.split(r"\s{2,}", line)[0].replace("/", ".").split(", ") for line in block.strip().splitlines()]
    named = {name for line in lines for name in line if not name.endswith(".*")}

    def modules(name):
        package = name.removesuffix(".*")
        return [name] if name in named else [m for m in PLACES if m not in named and (m == package or m.startswith(f"{package}."))]

    return [[module for name in line for module in modules(name)] for line in lines]


def test_the_documents_short_table_has_every_module_once():
    assert sorted(module for line in shown() for module in line) == sorted(PLACES)


def test_the_documents_short_table_has_the_order_of_this_one():
    spans = [[PLACES[module][0] for module in line] for line in shown()]
    assert all(max(above) <= min(below) for above, below in pairwise(spans)), "docs/reading.md, Layers of the house"


def test_every_module_has_a_place():
    assert sorted(PLACES.keys() | EMPTY) == sorted(MODULES), "write the new module into LAYERS, where its imports allow it"


@pytest.mark.parametrize("module", PLACES)
def test_imports_point_up_the_table(module):
    line, family = PLACES[module]
    for target in imports(module):
        if target in EMPTY or target == module:
            continue
        above, _ = PLACES[target]
        assert above < line or (family and above == line), f"{module} imports {target}, which does not stand above it"


@pytest.mark.parametrize("module", PLACES)
def test_late_imports_are_listed_with_their_reason(module):
    against = {target for target in imports(module, late=True) if target not in EMPTY and PLACES[target][0] >= PLACES[module][0]}
    assert against <= LATE.get(module, set())


def test_the_list_of_late_imports_is_needed():
    assert {m: sorted(t) for m, t in LATE.items() if not t <= imports(m, late=True).keys()} == {}


@pytest.mark.parametrize("module", KNOWS_NO_TRANSFORM)
def test_memory_features_and_graphs_name_no_transform(module):
    """They know State, saved tensors and layers; composing with a new transform must need no change here."""
    for late in (False, True):
        named = {t for t in imports(module, late=late) if t == "func" or t.startswith("interpreters")}
        assert not named
    assert not {w for w in words(module) if re.search(r"vmap|jvp|GradInterpreter|batched?$|bdim", w, re.IGNORECASE)}


@pytest.mark.parametrize("module", FROM_OPS)
def test_interpreters_name_no_op(module):
    taken = {t: names for t, names in imports(module).items() if t.startswith("ops.")}
    assert taken == FROM_OPS[module]


SHARED = {"_BatchNorm", "_Loss", "_WeightedLoss", "_is_fwd_grad_enabled",  # torch's names
          "_STATE"}  # set for good by torch._C's setters
"""Names with an underscore that another file takes."""


@pytest.mark.parametrize("module", MODULES)
def test_a_name_with_an_underscore_stays_in_its_file(module):
    taken = {name for late in (False, True) for names in imports(module, late=late).values() for name in names}
    assert {name for name in taken if name.startswith("_") and not name.startswith("__")} <= SHARED


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("ops.") or m == "op"])
def test_ops_and_rows_name_no_interpreter(module):
    for late in (False, True):
        assert not [t for t in imports(module, late=late) if t.startswith("interpreters") or t == "func"]


@pytest.mark.parametrize("module", MODULES)
def test_numpy_and_cupy_are_named_in_one_file(module):
    assert module == "backend" or not foreign_imports(module) & {"numpy", "cupy"}


@pytest.mark.parametrize("module", MODULES)
def test_the_package_knows_no_torch(module):
    """But upstream, which is for torch, and the scoreboard, which compares with it."""
    assert "torch" not in foreign_imports(module) or module.partition(".")[0] in ("upstream", "scoreboard")


@pytest.mark.parametrize("module", MODULES)
def test_upstream_and_the_core_know_nothing_of_each_other(module):
    targets = imports(module, late=False).keys() | imports(module, late=True).keys()
    mine = module.partition(".")[0] == "upstream"
    assert not {t for t in targets if (t.partition(".")[0] == "upstream") != mine}
