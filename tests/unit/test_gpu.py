"""minigrad/devices/gpu.py and cuda.py, on a cupy made of numpy: that the code runs, without a GPU."""

import pytest

import minigrad as mg
from minigrad import cuda, memory
from minigrad.autograd.graph import save_on_cpu
from minigrad.backend import address, share_memory
from minigrad.errors import UsageError
from minigrad.utils.checkpoint import checkpoint
from tests import cupy_standin
from tests.spec.instruments import chain

pytestmark = pytest.mark.usefixtures("cuda_stand_in")


def on_cuda(value=1.0, **options):
    return mg.full((2, 3), value, dtype=mg.float64, device="cuda", **options)


def test_there_is_one_object_for_cuda_and_cuda_0():
    assert mg.device("cuda") is mg.device("cuda:0")
    assert cuda.is_available()


def test_a_device_that_is_not_there_is_an_error_that_says_what_to_install():
    with pytest.raises(UsageError, match=r"invalid device ordinal.*minigrad\[cuda12\]"):
        mg.device("cuda:7")


def test_arrays_are_cupys_and_numbers_come_back():
    x = on_cuda(2.0)
    assert isinstance(x.value, cupy_standin.ndarray)
    assert (x.sum().item(), x[0].tolist(), repr(x[0])) == (
        12.0, [2.0] * 3, "tensor([2., 2., 2.], device='cuda:0', dtype=minigrad.float64)")


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.t(), lambda x: x[:, 1], lambda x: x[1:], lambda x: x.expand(4, 2, 3)],
                         ids=["itself", "transpose", "column", "rows", "expanded"])
def test_a_view_comes_back_from_the_host_in_its_strides(view):
    x = mg.arange(6, device="cuda").double().reshape(2, 3).clone().requires_grad_()
    seen = view(x)
    with (context := save_on_cpu(non_blocking=True)):
        y = mg.sin(seen)
    back = y.grad_fn._saved_self
    assert (back.tolist(), back.stride(), str(back.device), context.host_copies) == (seen.tolist(), seen.stride(), "cuda:0", 1)


@pytest.mark.parametrize("options", [{}, {"pin_memory": True}, {"non_blocking": True}])
def test_derivatives_under_save_on_cpu_are_those_of_the_plain_program(options):
    def gradient(*, offloaded):
        x = on_cuda(0.7, requires_grad=True)
        if offloaded:
            with save_on_cpu(**options):
                y = checkpoint(chain(3), chain(5)(x))
        else:
            y = chain(8)(x)
        y.sum().backward()
        return x.grad.tolist()
    assert gradient(offloaded=True) == gradient(offloaded=False)


def test_streams_and_events_are_cupys():
    stream, event = cuda.Stream(), cuda.Event(enable_timing=True)
    assert event.query()
    with cuda.stream(stream):
        assert cuda.current_stream() is stream
        event.record()
    cuda.current_stream().wait_event(event)
    cuda.current_stream().wait_stream(stream)
    stream.synchronize()
    event.synchronize()
    cuda.synchronize()
    assert (stream.query(), event.query(), event.elapsed_time(event)) == (True, True, 0.0)
    assert cuda.current_stream() is cuda.default_stream()


def test_pinned_memory_goes_there_and_back():
    host = mg.ones(4, device="cpu").pin_memory("cuda")
    assert host.is_pinned()
    there = host.to("cuda", non_blocking=True)
    back = there.to("cpu", non_blocking=True)
    cuda.synchronize()
    assert (back.tolist(), back.is_pinned()) == ([1.0] * 4, True)


def test_bytes_are_counted_to_the_integer():
    before = cuda.memory_stats()
    with memory.measured("cuda") as m, memory.timeline() as t:
        x = on_cuda()
        y = x.cpu()
        del x
    after = cuda.memory_stats()
    assert (m.peak, m.live, t.peak("cuda").nbytes) == (48, 0, 48)
    assert after["copied_bytes.to_host"] - before["copied_bytes.to_host"] == y.numel() * 8


def test_a_number_on_the_host_goes_with_arrays_of_cupy_and_an_array_does_not():
    assert (on_cuda() * mg.tensor(2.0, device="cpu")).sum().item() == 12.0
    with pytest.raises(UsageError, match="at least two devices"):
        on_cuda() * mg.ones(3, device="cpu")


def test_gradients_accumulate_where_they_stand():
    x = on_cuda(requires_grad=True)
    x.sin().sum().backward()
    place = address(x.grad.value)
    x.sin().sum().backward()
    assert address(x.grad.value) == place


# ---------------------------------------------------------------- several devices
@pytest.fixture
def _two_devices(monkeypatch):
    monkeypatch.setattr(cupy_standin, "DEVICES", [2])


@pytest.mark.usefixtures("_two_devices")
@pytest.mark.parametrize("options", [{}, {"pin_memory": True}, {"non_blocking": True}])
def test_work_goes_to_the_device_of_its_tensors(options):
    x = mg.full((2, 3), 0.7, dtype=mg.float64, device="cuda:1", requires_grad=True)
    with save_on_cpu(**options):
        y = checkpoint(chain(3), chain(5)(x)) @ mg.rand(3, device="cuda:1").double()
    y.sum().backward()
    assert (x.grad.value.device.id, str(x.grad.device), cupy_standin.Device._now) == (1, "cuda:1", 0)


@pytest.mark.usefixtures("_two_devices")
def test_a_tensor_goes_from_one_device_to_the_other_by_the_host():
    x = mg.arange(6, device="cuda:1").reshape(2, 3)
    assert x.to("cuda:0").tolist() == x.t().to("cuda:0").t().tolist() == x.tolist()
    with pytest.raises(UsageError, match="at least two devices"):
        x + x.to("cuda:0")


@pytest.mark.usefixtures("_two_devices")
def test_streams_and_events_are_those_of_their_device():
    stream = cuda.Stream("cuda:1")
    with cuda.stream(stream):
        assert (cuda.current_stream("cuda:1"), cuda.current_stream("cuda:0")) == (stream, cuda.default_stream("cuda:0"))
        y = mg.ones(3, device="cuda:1") * 2
        stream.record_event()
    cuda.current_stream("cuda:1").wait_stream(stream)
    cuda.synchronize("cuda:1")
    assert y.tolist() == [2.0] * 3


# ---------------------------------------------------------------- exchange, and what cupy refuses
def test_arrays_of_cupy_are_exchanged_without_copies():
    x = mg.arange(3, device="cuda")
    y = mg.from_dlpack(x)
    y.add_(1)
    assert (x.__dlpack_device__(), str(y.device), x.tolist()) == ((2, 0), "cuda:0", [1, 2, 3])


@pytest.mark.parametrize("options", [{}, {"pin_memory": True}, {"non_blocking": True}])
def test_memory_of_somebody_elses_that_has_gaps_is_offloaded_by_its_elements(options):
    x = mg.from_dlpack(cupy_standin.CUPY.arange(12.0).reshape(3, 4)[:, ::2]).requires_grad_()
    with (context := save_on_cpu(**options)):
        y = mg.sin(x)
    assert (y.grad_fn._saved_self.tolist(), context.host_copies) == (x.tolist(), 1)
    y.sum().backward()
    assert x.grad.tolist() == mg.cos(x).tolist()


def test_pinned_memory_is_used_again_where_its_copies_are_done():
    def step():
        x = on_cuda(0.7, requires_grad=True)
        with save_on_cpu(non_blocking=True):
            y = chain(6)(x)
        y.sum().backward()
        return mg.device("cuda").pool.held
    assert step() == step()


@pytest.mark.parametrize("dtype", [mg.complex64, mg.complex128, mg.int64, mg.int32, mg.int16, mg.uint8, mg.float16, mg.bool], ids=str)
def test_sums_at_indices_are_those_of_the_host(dtype):
    def found(device):
        x = mg.ones(3, device=device).to(dtype)
        return x.index_put((mg.tensor([0, 2, 0], device=device),), mg.ones(3, device=device).to(dtype), accumulate=True).tolist()
    assert found("cuda") == found("cpu")


@pytest.mark.parametrize(("f", "text"), [(mg.linalg.inv, "Singular"), (mg.linalg.cholesky, "not positive definite")], ids=["inv", "cholesky"])
def test_a_matrix_that_has_none_is_an_error(f, text):
    with pytest.raises(UsageError, match=text):
        f(mg.tensor([[1.0, 2.0], [2.0, 1.0]], device="cuda") - mg.tensor([[0.0, 1.0], [1.0, 0.0]], device="cuda"))


def test_a_view_with_gaps_goes_to_the_host_and_back_by_its_elements():
    x = mg.arange(12, device="cuda").reshape(3, 4)[:, ::2]
    there = x.cpu()
    assert (there.tolist(), there[::2].to("cuda").tolist()) == ([[0, 2], [4, 6], [8, 10]], [[0, 2], [8, 10]])


def test_bytes_in_use_and_their_peak_are_asked_for_in_torchs_words():
    cuda.reset_peak_memory_stats()
    start = cuda.memory_allocated()
    x = on_cuda()
    del x
    assert (cuda.memory_allocated() - start, cuda.max_memory_allocated() - start) == (0, 48)


def test_tensors_know_whether_they_share_memory():
    x, y = on_cuda(), on_cuda()
    assert share_memory(x.value, x[0].value)
    assert not share_memory(x.value, y.value)


def test_without_a_device_cuda_is_not_available(monkeypatch):
    monkeypatch.setattr(cupy_standin, "DEVICES", [0])
    assert not cuda.is_available()
