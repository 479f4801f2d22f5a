import planted

from ragforge.stages.generate.gates.codes import CODES, MEANINGS


def test_each_code_has_a_meaning_in_the_order_of_the_gates():
    """The printed funnel tells what to do about each."""
    assert list(MEANINGS) == list(CODES)


def test_each_code_is_planted():
    """A gate that nothing is planted for may never have caught anything."""
    assert {one.code for one in planted.planted()} == set(CODES)
