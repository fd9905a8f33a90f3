"""minigrad/devices/gpu.py and cuda.py, on a cupy made of numpy: that the code runs, without a GPU."""

import pytest

import minigrad as mg
from minigrad import backend, cuda, memory
from minigrad.autograd.graph import save_on_cpu
from minigrad.backend import address
from minigrad.devices import gpu
from minigrad.errors import UsageError
from minigrad.utils.checkpoint import checkpoint
from tests import cupy_standin
from tests.spec.instruments import chain


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch):
    monkeypatch.setattr(gpu, "import_cupy", lambda: (cupy_standin.CUPY, cupy_standin.CUPYX))
    monkeypatch.setattr(gpu, "_FOUND", {})
    monkeypatch.setattr(backend, "_FOUND", {k: v for k, v in backend._FOUND.items() if not k.startswith("cuda")})


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
