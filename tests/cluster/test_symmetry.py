"""States that cannot be told apart have one canonical state, and it is one of them."""

from hypothesis import given
from hypothesis import strategies as st

from r2cc_simai.cluster.load import load_cluster
from r2cc_simai.cluster.symmetry import Move, State, Symmetry, alone, kinds_of, turns_of
from r2cc_simai.collectives.rail_moves import rail_moves

H100 = load_cluster("h100x4")
NICS = 8
SERVERS = tuple((server.index,) for server in H100.servers)
PAIRS = ((0, 2), (1, 3))
RAILS = rail_moves(H100)

LABELS = st.dictionaries(
    st.integers(0, 4 * NICS - 1), st.sampled_from([(0.0,), (0.5,)]), max_size=6
)  # rate fraction by NIC
SYMMETRIES = st.sampled_from(
    [
        Symmetry(H100, SERVERS, (0,) * 4, free=True, turns=(0, 1, 2, 3), rails=RAILS),
        Symmetry(H100, SERVERS, (0, 0, 1, 1), free=True, turns=(0,), rails=RAILS[:1]),
        Symmetry(H100, SERVERS, (0, 1, 2, 3), free=False, turns=(0, 1, 2, 3), rails=RAILS),
        Symmetry(H100, SERVERS, (0, 1, 2, 3), free=False, turns=(0, 2), rails=RAILS[:1]),
        Symmetry(H100, PAIRS, (0, 0), free=True, turns=(0, 1), rails=RAILS),
        Symmetry(H100, PAIRS, (0, 1), free=False, turns=(0, 1), rails=RAILS),
    ]
)


def moved(symmetry: Symmetry, labels: State, order: list[int], rail: Move) -> State:
    """The state when block k takes the place of block order[k], and position i of a server that of rail[i]."""
    to = {
        a: b for k, there in enumerate(order) for a, b in zip(symmetry.blocks[k], symmetry.blocks[there], strict=True)
    }
    return tuple(sorted((to[nic // NICS] * NICS + rail[nic % NICS], label) for nic, label in labels))


@st.composite
def moves(draw: st.DrawFn) -> tuple[Symmetry, list[int], Move]:
    """A symmetry, and one of its moves of blocks and rails."""
    symmetry = draw(SYMMETRIES)
    count = len(symmetry.blocks)
    if symmetry.free:
        order = draw(
            st.permutations(range(count)).filter(
                lambda o: all(symmetry.kinds[a] == symmetry.kinds[b] for a, b in enumerate(o))
            )
        )
    else:
        turn = draw(st.sampled_from(symmetry.turns))
        order = [(block + turn) % count for block in range(count)]
    return symmetry, list(order), draw(st.sampled_from(symmetry.rails))


@given(SYMMETRIES, LABELS)
def test_a_canonical_state_is_its_own(symmetry: Symmetry, labels: dict[int, tuple[float]]) -> None:
    """c(c(x)) = c(x)."""
    state = symmetry.canonical(labels)
    assert symmetry.canonical(dict(state)) == state


@given(moves(), LABELS)
def test_moves_do_not_change_the_canonical_state(
    move: tuple[Symmetry, list[int], Move], labels: dict[int, tuple[float]]
) -> None:
    """c(m(x)) = c(x) for every move m; rails move where all labels are the same or on one server."""
    symmetry, order, rail = move
    if len({nic // NICS for nic in labels}) > 1 and len(set(labels.values())) > 1:
        rail = symmetry.rails[0]
    state = tuple(sorted(labels.items()))
    assert symmetry.canonical(dict(moved(symmetry, state, order, rail))) == symmetry.canonical(labels)


@given(SYMMETRIES, LABELS)
def test_a_canonical_state_has_the_same_labels_in_blocks_of_the_same_kinds(
    symmetry: Symmetry, labels: dict[int, tuple[float]]
) -> None:
    """Nothing is lost or made up, and what is on one server stays on one."""

    def per_server(state: State) -> list[list[tuple[float | str, ...]]]:
        servers: dict[int, list[tuple[float | str, ...]]] = {}
        for nic, label in state:
            servers.setdefault(nic // NICS, []).append(label)
        return sorted(sorted(own) for own in servers.values())

    assert per_server(symmetry.canonical(labels)) == per_server(tuple(labels.items()))


def test_every_state_of_a_cluster_without_moves_stands_for_itself() -> None:
    """Servers 0 and 3 keep apart."""
    state = ((3, (0.0,)), (25, (0.5,)))
    assert alone(H100).canonical(dict(state)) == state


def test_states_that_differ_in_the_distance_of_servers_are_told_apart_unless_blocks_are_free() -> None:
    """Neighbours in a ring are no neighbours but one; where order is no matter they are."""
    near, far = {0: (0.0,), 8: (0.0,)}, {0: (0.0,), 16: (0.0,)}
    ring = Symmetry(H100, SERVERS, (0, 1, 2, 3), free=False, turns=(0, 1, 2, 3), rails=RAILS)
    free = Symmetry(H100, SERVERS, (0, 0, 0, 0), free=True, turns=(0,), rails=RAILS)
    assert ring.canonical(near) != ring.canonical(far)
    assert free.canonical(near) == free.canonical(far)


def test_servers_below_different_leaf_switches_are_of_different_kinds() -> None:
    """Eight servers in pods of four: two kinds, and turns by whole pods alone."""
    cluster = load_cluster("a100-leaf-spine")
    blocks = [(server.index,) for server in cluster.servers]
    assert kinds_of(cluster, blocks) == (0, 0, 0, 0, 1, 1, 1, 1)
    assert turns_of(cluster, blocks) == (0, 4)
