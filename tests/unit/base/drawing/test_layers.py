"""The layers of a drawn graph."""

from itertools import pairwise

from ottla.base.drawing.layers import layered


def test_each_node_is_behind_all_nodes_that_lead_to_it() -> None:
    """The longest path to a node is its layer."""
    lines = [("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")]
    assert layered(["c", "b", "a", "d"], lines) == [["a", "d"], ["b"], ["c"]]


def test_a_loop_is_cut_at_its_entry() -> None:
    """Every node of a loop has a layer: the first one is the entry."""
    assert layered(["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a")]) == [["a"], ["b"], ["c"]]


def test_lines_between_neighbours_do_not_cross_if_they_need_not() -> None:
    """A layer is in the order of the nodes that its own are connected to."""
    lines = [("a", "y"), ("b", "x")]
    first, second = layered(["a", "b", "x", "y"], lines)
    assert [lines[("a", "b").index(name)][1] for name in first] == second


def test_a_long_chain_has_a_layer_for_each_node() -> None:
    """The depth is not limited by Python's stack."""
    names = [f"node {number}" for number in range(3000)]
    chain = list(pairwise(names))
    assert layered(names[::-1], chain) == [[name] for name in names]


def test_nothing_has_no_layers() -> None:
    """An empty topology does not fail."""
    assert layered([], []) == []
