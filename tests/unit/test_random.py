"""minigrad/random.py"""

import pytest

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.random import Generator, fork_rng, generator_of


def test_a_seed_begins_a_stream():
    a, b = Generator().manual_seed(7), Generator().manual_seed(7)
    assert mg.rand(3, generator=a, device="cpu").tolist() == mg.rand(3, generator=b, device="cpu").tolist()


def test_a_stream_goes_on():
    g = Generator().manual_seed(7)
    assert mg.rand(3, generator=g, device="cpu").tolist() != mg.rand(3, generator=g, device="cpu").tolist()


def test_the_whole_state_is_seed_and_offset():
    g = Generator().manual_seed(7)
    mg.rand(3, generator=g, device="cpu")
    assert g.place == (7, 1)
    assert g.get_state().shape == (16,)


def test_a_state_can_be_put_back():
    g = Generator().manual_seed(7)
    mg.rand(3, generator=g, device="cpu")
    state = g.get_state()
    first = mg.rand(3, generator=g, device="cpu")
    g.set_state(state)
    assert mg.rand(3, generator=g, device="cpu").tolist() == first.tolist()


def test_a_wrong_state_is_an_error():
    with pytest.raises(UsageError, match="Expected a Generator state of 16 bytes"):
        Generator().set_state(mg.zeros(3))


def test_seeds_are_64_bits():
    assert Generator().manual_seed(-1).initial_seed() == (1 << 64) - 1
    with pytest.raises(ValueError, match="Overflow"):
        Generator().manual_seed(1 << 64)


def test_a_seed_that_nobody_knows_is_returned():
    g = Generator()
    assert g.seed() == g.initial_seed()


def test_a_clone_goes_its_own_way():
    g = Generator().manual_seed(7)
    copy = g.clone_state()
    mg.rand(3, generator=g, device="cpu")
    assert copy.place == (7, 0)


def test_a_generator_draws_for_its_device_only():
    with pytest.raises(UsageError, match="Expected a 'sim' device type for generator but found 'cpu'"):
        mg.rand(2, generator=Generator(), device="sim")


def test_manual_seed_seeds_every_device():
    mg.manual_seed(5)
    assert {generator_of(mg.device(name)).initial_seed() for name in ("cpu", "sim")} == {5}


def test_what_is_drawn_in_a_fork_is_forgotten():
    mg.manual_seed(5)
    with fork_rng():
        inside = mg.rand(2).tolist()
    assert mg.rand(2).tolist() == inside


def test_a_fork_of_no_device_is_one_of_the_cpu():
    mg.manual_seed(5)
    with fork_rng(devices=[]):
        mg.rand(2, device="sim")
        mg.rand(2, device="cpu")
    assert (generator_of(mg.device("sim")).place[1], generator_of(mg.device("cpu")).place[1]) == (1, 0)


def test_the_state_of_the_default_generator():
    mg.manual_seed(9)
    state = mg.get_rng_state()
    a = mg.rand(2, device="cpu")
    mg.set_rng_state(state)
    assert mg.rand(2, device="cpu").tolist() == a.tolist()
    assert mg.initial_seed() == 9


def test_a_draw_does_not_depend_on_how_much_was_drawn_before():
    g = Generator().manual_seed(1)
    mg.rand(1000, generator=g, device="cpu")
    after = mg.rand(2, generator=g, device="cpu").tolist()
    g.manual_seed(1)
    mg.rand(1, generator=g, device="cpu")
    assert mg.rand(2, generator=g, device="cpu").tolist() == after
