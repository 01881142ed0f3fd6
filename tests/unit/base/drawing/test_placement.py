"""Boxes of a drawn graph have places that do not overlap, behind the boxes that lead to them."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.base.drawing.placement import DrawingPlacement, Rectangle, Spacing, place

SPACING = Spacing(layers=40, boxes=10, margin=5)
SIZES = st.dictionaries(
    st.integers(0, 12), st.tuples(st.integers(1, 90), st.integers(1, 30)), max_size=8
)


def _overlap(one: Rectangle, other: Rectangle) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


@given(SIZES, st.data(), st.booleans())
def test_boxes_have_places_of_their_own_within_the_drawing(
    sizes: dict[int, tuple[float, float]], data: st.DataObject, is_down: bool
) -> None:
    """No two boxes overlap, all are inside, and a line leads to a later layer unless in a loop."""
    node = st.sampled_from(sorted(sizes)) if sizes else st.nothing()
    pairs = data.draw(st.lists(st.tuples(node, node).filter(lambda pair: pair[0] < pair[1])))
    placement: DrawingPlacement[int] = place(sizes, pairs, SPACING, is_down=is_down)
    places = placement.places
    assert {key: (at.width, at.height) for key, at in places.items()} == sizes
    for one in places:
        assert not any(_overlap(places[one], places[other]) for other in places if other != one)
        assert 5 <= places[one].x <= placement.width - 5 - places[one].width
        assert 5 <= places[one].y <= placement.height - 5 - places[one].height
    for start, end in pairs:
        if is_down:
            assert places[start].y + places[start].height < places[end].y
        else:
            assert places[start].x + places[start].width < places[end].x


def test_a_graph_without_boxes_has_a_drawing_of_margins() -> None:
    """An application without topics is an empty drawing with a size above zero."""
    empty: DrawingPlacement[int] = place({}, [], SPACING, is_down=True)
    assert empty == DrawingPlacement({}, 10, 10)
