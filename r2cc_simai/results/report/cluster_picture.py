"""The cluster drawn with its failures: servers with their NICs, the switches above them, and what hits which."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from r2cc_simai.cluster.model import Cluster
from r2cc_simai.failures.incident import Incident
from r2cc_simai.results.report import palette, plotting
from r2cc_simai.results.report.cluster_overview import all_servers, overview_height
from r2cc_simai.results.report.cluster_states import States, servers_to_show, worst_states

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_EDGE = 0.15  # inches
_BOX = 1.15
_GAP = 0.12
_HEAD = 0.72
_SWITCH = 0.2
_MOST_LINES = 3
_RAILS = 0.75  # where the rails begin, right of their names


def cluster_svg(cluster: Cluster, incidents: Sequence[Incident], title: str) -> str:
    """Return the SVG document of a cluster: red is down, amber slower, green untouched, at worst over the whole time.

    Of more than eight servers those are drawn that the failures hit most, and all servers as small squares.
    """
    return plotting.draw(*_picture(cluster, incidents, title))


def color_of(state: float) -> str:
    """Return the colour of a rate fraction."""
    return palette.DOWN if state == 0 else palette.SLOWER if state < 1 else palette.WORKS


def _picture(cluster: Cluster, incidents: Sequence[Incident], title: str) -> tuple[float, Callable[["Figure"], None]]:
    states = worst_states(incidents, cluster)
    shown = servers_to_show(states, cluster)
    whole = len(shown) == len(cluster.servers)
    below = 0.0 if whole else overview_height(cluster)
    height = _HEAD + _fabric_height(cluster) + _BOX + below + _EDGE

    def paint(figure: "Figure") -> None:
        plotting.heading(figure, title)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, plotting.WIDTH)
        axes.set_ylim(0, height)
        _text(axes, 0.12, height - 0.44, _summary(cluster, states), color=palette.MUTED, fontsize=8.5)
        top = _EDGE + below + _BOX
        ports = _paint_servers(axes, cluster, states, shown, top)
        _paint_fabric(axes, cluster, states, ports, top)
        if not whole:
            all_servers(axes, cluster, states, _EDGE)

    return height, paint


def _summary(cluster: Cluster, states: States) -> str:
    down = int((states.nic == 0).sum())
    slower = int(((states.nic > 0) & (states.nic < 1)).sum())
    hit = int((states.lost(cluster) > 0).sum())
    parts = [f"{down:,} down"] * (down > 0) + [f"{slower:,} slower"] * (slower > 0)
    told = f"{' and '.join(parts)} at some time, on {hit:,} of the servers" if parts else "all work"
    return f"{len(cluster.servers):,} servers with {len(cluster.nics):,} NICs: {told}"


Ports = dict[int, tuple[float, float]]
"""Where the link of each NIC that is drawn begins: x and y in inches."""


def _paint_servers(axes: "Axes", cluster: Cluster, states: States, shown: Sequence[int], top: float) -> Ports:
    ports: Ports = {}
    first = _RAILS if _has_rails(cluster) else _EDGE
    room = plotting.WIDTH - first - _EDGE
    pitch = min(3.4, room / len(shown))
    left = first + (room - pitch * len(shown)) / 2
    for place, number in enumerate(shown):
        ports |= _paint_server(axes, cluster, states, number, (left + place * pitch + _GAP / 2, top, pitch - _GAP))
    return ports


def _paint_server(
    axes: "Axes", cluster: Cluster, states: States, number: int, place: tuple[float, float, float]
) -> Ports:
    """Draw one server; `place` is its left edge, its upper edge and its width."""
    x, top, width = place
    server = cluster.servers[number]
    hurt = states.server.get(number, 1.0)
    edge = palette.MUTED if hurt == 1 else color_of(hurt)
    _box(axes, (x, top - _BOX, width, _BOX), fill="none", edge=edge, line=1.0 if hurt == 1 else 2.0)
    step = width / len(server.nics)
    size = min(0.2, 0.72 * step)
    ports: Ports = {}
    for k, nic in enumerate(server.nics):
        middle = x + (k + 0.5) * step
        _box(axes, (middle - size / 2, top - 0.12 - size, size, size), fill=color_of(states.nic[nic]))
        ports[nic] = middle, top - 0.12
        name = cluster.nics[nic].name
        if len(name) * 0.062 < step:
            _text(axes, middle, top - 0.2 - size, name, ha="center", fontsize=6.5, color=palette.MUTED)
    _text(axes, x + 0.07, top - 0.56, f"server{number}", fontsize=8.0, fontweight="bold")
    lines = _told(cluster, states, number) or [f"{len(server.ranks)} GPU" + "s" * (len(server.ranks) > 1)]
    most = max(4, int(width / 0.066))
    for k, line in enumerate(lines):
        short = line if len(line) <= most else line[: most - 1] + "…"
        _text(axes, x + 0.07, top - 0.72 - 0.14 * k, short, fontsize=7.0, color=palette.MUTED)
    return ports


def _told(cluster: Cluster, states: States, number: int) -> list[str]:
    """What is wrong on a server, a line for each NIC, the worst ones first."""
    hurt = sorted((states.nic[n], n) for n in cluster.servers[number].nics if states.nic[n] < 1)
    lines = [f"{cluster.nics[n].name} {'down' if state == 0 else f'{100 * state:.3g}% left'}" for state, n in hurt]
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[: _MOST_LINES - 1], f"and {len(lines) - _MOST_LINES + 1} more NICs"]


def _has_rails(cluster: Cluster) -> bool:
    return cluster.spec.fabric.kind == "switch-per-rail"


def _rails(cluster: Cluster) -> list[int]:
    return sorted({nic.rail for nic in cluster.nics})


def _rail_step(cluster: Cluster) -> float:
    return min(0.24, 2.4 / len(_rails(cluster)))


def _fabric_height(cluster: Cluster) -> float:
    if cluster.leaves:
        return 1.5
    return 0.3 + _rail_step(cluster) * len(_rails(cluster)) if _has_rails(cluster) else 0.65


def _paint_fabric(axes: "Axes", cluster: Cluster, states: States, ports: Ports, top: float) -> None:
    if cluster.leaves:
        _paint_leaves(axes, cluster, states, ports, top)
    elif _has_rails(cluster):
        _paint_rails(axes, cluster, states, ports, top)
    else:
        middle = top + 0.5
        _box(axes, (_EDGE, middle - _SWITCH / 2, plotting.WIDTH - 2 * _EDGE, _SWITCH), fill=palette.GRID)
        _text(axes, plotting.WIDTH / 2, middle, "one switch for all NICs", ha="center", fontsize=7.5)
        for nic, (x, y) in ports.items():
            _link(axes, (x, y), (x, middle - _SWITCH / 2), states.nic[nic])


def _paint_rails(axes: "Axes", cluster: Cluster, states: States, ports: Ports, top: float) -> None:
    step = _rail_step(cluster)
    heights = {rail: top + 0.3 + step * (k + 0.5) for k, rail in enumerate(_rails(cluster))}
    for rail, y in heights.items():
        state = states.rail.get(rail, 1.0)
        fill = palette.GRID if state == 1 else color_of(state)
        _box(axes, (_RAILS, y - step * 0.3, plotting.WIDTH - _RAILS - _EDGE, step * 0.6), fill=fill)
        _text(axes, _RAILS - 0.07, y, f"rail{rail}", ha="right", fontsize=min(7.5, step * 36))
    for nic, (x, y) in ports.items():
        end = heights[cluster.nics[nic].rail]
        _link(axes, (x, y), (x, end), states.nic[nic])
        axes.plot([x], [end], "o", markersize=2.5, color=_line_color(states.nic[nic]), zorder=4)


def _paint_leaves(axes: "Axes", cluster: Cluster, states: States, ports: Ports, top: float) -> None:
    """Draw the leaves of the pods whose servers are drawn, each pod's above its servers, and the spine."""
    y, spine = top + 0.62, top + 1.25
    _box(axes, (_EDGE, spine - _SWITCH / 2, plotting.WIDTH - 2 * _EDGE, _SWITCH), fill=palette.GRID)
    _text(axes, plotting.WIDTH / 2, spine, "spine", ha="center", fontsize=7.5)
    pods: dict[int, list[int]] = {}
    for nic in ports:
        leaf = cluster.leaf_of_nic[nic]
        members = pods.setdefault(cluster.leaves[leaf].pod, [])
        if leaf not in members:
            members.append(leaf)
    for members in pods.values():
        xs = [ports[nic][0] for nic in ports if cluster.leaf_of_nic[nic] in members]
        step = (max(xs) - min(xs) + 0.3) / len(members)
        for k, leaf in enumerate(sorted(members)):
            x = min(xs) - 0.15 + (k + 0.5) * step
            state = states.leaf.get(leaf, 1.0)
            wide = min(0.8, 0.84 * step)
            fill = palette.GRID if state == 1 else color_of(state)
            _link(axes, (x, y), (x, spine - _SWITCH / 2), state)
            _box(axes, (x - wide / 2, y - _SWITCH / 2, wide, _SWITCH), fill=fill)
            name = f"leaf{leaf}"
            _text(axes, x, y, name if len(name) * 0.07 < wide else str(leaf), ha="center", fontsize=6.5)
            for nic in cluster.leaves[leaf].nics:
                if nic in ports:
                    _link(axes, ports[nic], (x, y - _SWITCH / 2), states.nic[nic])


def _line_color(state: float) -> str:
    return palette.MEASURED if state == 1 else color_of(state)


def _link(axes: "Axes", start: tuple[float, float], end: tuple[float, float], state: float) -> None:
    hurt = state < 1
    axes.plot(
        [start[0], end[0]],
        [start[1], end[1]],
        "--" if state == 0 else "-",
        color=_line_color(state),
        linewidth=1.4 if hurt else 0.7,
        zorder=3 if hurt else 2,
    )


def _box(
    axes: "Axes", where: tuple[float, float, float, float], fill: str, edge: str = "none", line: float = 1.0
) -> None:
    from matplotlib.patches import Rectangle

    x, y, width, height = where
    axes.add_patch(Rectangle((x, y), width, height, facecolor=fill, edgecolor=edge, linewidth=line, zorder=3.5))


def _text(axes: "Axes", x: float, y: float, text: str, **style: Any) -> None:
    axes.text(x, y, text, va="center", parse_math=False, zorder=5, **style)
