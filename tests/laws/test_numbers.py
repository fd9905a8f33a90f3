"""A call has the same number whenever it is made on the same values: else a policy would keep in vain. [NOTE kept-by-value]"""

from minigrad.regions.numbering import Numbers
from tests.laws.cases import cases
from tests.laws.samples import NO_INPUTS


@cases(single=True, wanted=lambda case: case.name not in NO_INPUTS)
def test_a_call_of_a_row_is_recognised(case, device):
    numbers, args = Numbers(), case.tensors(0, device)
    first = numbers.call(case.call, tuple(args), case.params(device))
    assert numbers.call(case.call, tuple(args), case.params(device)) == first
    others = [x.clone() if hasattr(x, "clone") else x for x in args]
    assert numbers.call(case.call, tuple(others), case.params(device)) != first
