"""The buffer of a rank as a torch tensor, and the posts of each round as views of it."""

from typing import Any

from numpy.typing import NDArray

from r2cc_simai.real.rounds import RankRounds


class TorchMemory:
    """The buffer of a rank and the room for what is still to be added, on its device ("cpu", "cuda:0").

    Rounds share that room: on a GPU the additions of a round and the receives of the next are in stream order.
    """

    def __init__(self, rounds: RankRounds, elements: int, dtype: str, op: str, device: str) -> None:
        import torch

        self._rounds = rounds
        self._op = op
        kind = getattr(torch, dtype)
        self._buffer = torch.empty(elements, dtype=kind, device=device)
        self._staging = torch.empty(rounds.staging, dtype=kind, device=device)
        self._posts: list[list[tuple[bool, Any, int, int]]] = []
        self._adds: list[list[tuple[Any, Any]]] = []
        for number in range(rounds.count):
            self._prepare(int(rounds.offset[number]), int(rounds.offset[number + 1]))

    def _prepare(self, first: int, end: int) -> None:
        """The views of a round, once for all iterations."""
        rounds, at = self._rounds, 0
        posts: list[tuple[bool, Any, int, int]] = []
        adds: list[tuple[Any, Any]] = []
        for one in range(first, end):
            lo, hi = int(rounds.lo[one]), int(rounds.hi[one])
            view = self._buffer[lo:hi]
            if rounds.reduce[one]:
                adds.append((view, self._staging[at : at + hi - lo]))
                view, at = adds[-1][1], at + hi - lo
            posts.append((bool(rounds.send[one]), view, int(rounds.peer[one]), int(rounds.tag[one])))
        self._posts.append(posts)
        self._adds.append(adds)

    def fill(self, values: NDArray[Any]) -> None:
        """Puts the rank's own contribution in."""
        import torch

        self._buffer.copy_(torch.from_numpy(values))
        self.synchronize()

    def posts(self, number: int) -> list[Any]:
        """The sends and receives of a round."""
        import torch.distributed as dist

        return [
            dist.P2POp(dist.isend if send else dist.irecv, view, peer, tag=tag)
            for send, view, peer, tag in self._posts[number]
        ]

    def reduce(self, number: int) -> None:
        """Adds what a round has brought."""
        import torch

        for own, other in self._adds[number]:
            if self._op == "max":
                torch.maximum(own, other, out=own)
            else:
                own.add_(other)

    def divide(self, n: int) -> None:
        """Makes averages of sums over `n` ranks; whole numbers are rounded towards 0."""
        self._buffer.div_(n, rounding_mode=None if self._buffer.is_floating_point() else "trunc")

    def synchronize(self) -> None:
        """Waits for the device."""
        import torch

        if self._buffer.is_cuda:
            torch.cuda.synchronize(self._buffer.device)

    def result(self) -> NDArray[Any]:
        """The buffer."""
        found: NDArray[Any] = self._buffer.cpu().numpy()
        return found
