"""What a serving engine computes in each of its steps: continuous batching with chunked prefill, as vLLM schedules it.

All requests are there from the start and have equal lengths. In each step every running sequence gets its next token
or the next chunk of its prompt, in the order of arrival, and waiting ones are admitted as long as tokens and
sequences are left of the step's budget. Keys and values always fit.
Source: vLLM, vllm/v1/core/sched/scheduler.py.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Piece:
    """Sequences of a batch that do the same."""

    sequences: int
    tokens: int
    """New tokens of each: 1 where it decodes."""
    context: int
    """Tokens of each in the KV cache behind the step."""
    decoding: bool
    sampled: bool
    """Whether the step ends with a new token of each; not so for a prompt's first chunks."""


@dataclass(frozen=True)
class Batch:
    """One step of an engine."""

    pieces: tuple[Piece, ...]
    prompts: tuple[int, ...] = ()
    """Sequences whose prompts end here."""

    @property
    def tokens(self) -> int:
        """All new tokens."""
        return sum(piece.sequences * piece.tokens for piece in self.pieces)

    @property
    def decoding(self) -> bool:
        """Whether no prompt is worked on."""
        return all(piece.decoding for piece in self.pieces)

    @property
    def decoding_sequences(self) -> int:
        """Sequences past their prompts."""
        return sum(piece.sequences for piece in self.pieces if piece.decoding)

    @property
    def sampled(self) -> int:
        """Sequences that get a new token."""
        return sum(piece.sequences for piece in self.pieces if piece.sampled)


@dataclass(frozen=True)
class Requests:
    """What all requests have in common, and the budget of a step."""

    input_len: int
    output_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    prefilled: bool = False
    """Their prompts are in the KV cache already, and their first tokens sampled."""


@dataclass(frozen=True)
class Step:
    """One step of one of the engines that share a pipeline."""

    engine: int
    batch: Batch
    number: int
    """In the order in which the pipeline's stages work on them."""
    before: int
    """Number of the engine's step before; -1 if there is none."""
    awaited: int
    """Tokens of the step before that this one needs."""
    returned: int
    """Tokens of this one that the engine's next step needs."""


def pipelined(engines: Sequence[Sequence[Batch]]) -> tuple[Step, ...]:
    """The steps of engines that take turns. A sequence that decodes got its token in the engine's step before."""
    steps: list[Step] = []
    before = [-1] * len(engines)
    for turn in range(max(map(len, engines))):
        for engine, batches in enumerate(engines):
            if turn >= len(batches):
                continue
            needed = batches[turn].decoding_sequences if turn else 0
            following = batches[turn + 1].decoding_sequences if turn + 1 < len(batches) else 0
            steps.append(Step(engine, batches[turn], len(steps), before[engine], needed, following))
            before[engine] = steps[-1].number
    return tuple(steps)


@dataclass
class _Sequence:
    number: int
    computed: int = 0
    sampled: int = 0


@dataclass
class _Step:
    budget: int
    pieces: Counter[tuple[int, int, bool, bool]] = field(default_factory=Counter)
    prompts: list[int] = field(default_factory=list)


def engine_batches(requests: Requests, sequences: range, limit: int | None = None) -> tuple[Batch, ...]:
    """The steps of one engine that serves the given sequences, at most `limit`, else until all are done."""
    steps = _run(requests, sequences)
    return tuple(step for step, _ in zip(steps, range(limit), strict=False)) if limit else tuple(steps)


def virtual_engines(sequences: int, pp: int, max_num_seqs: int) -> tuple[tuple[range, int], ...]:
    """Sequences of each batch in flight, and how many of them it runs at a time.

    A pipeline works on as many batches at a time as it has stages, each with its own sequences; they are dealt in turn.
    """
    engines = min(pp, sequences, max_num_seqs)
    return tuple((range(k, sequences, engines), len(range(k, max_num_seqs, engines))) for k in range(engines))


def _run(requests: Requests, numbers: range) -> Iterator[Batch]:
    start = requests.input_len if requests.prefilled else 0
    waiting = [_Sequence(number, start, int(requests.prefilled)) for number in reversed(numbers)]
    running: list[_Sequence] = []
    while waiting or running:
        step = _Step(requests.max_num_batched_tokens)
        for sequence in running:
            _advance(requests, sequence, step)
        while waiting and len(running) < requests.max_num_seqs and step.budget:
            running.append(waiting.pop())
            _advance(requests, running[-1], step)
        running = [sequence for sequence in running if sequence.sampled < requests.output_len]
        pieces = tuple(Piece(count, *what) for what, count in step.pieces.items())
        if pieces:
            yield Batch(pieces, tuple(step.prompts))


def _advance(requests: Requests, sequence: _Sequence, step: _Step) -> None:
    """Gives a sequence its part of the step."""
    decoding = sequence.computed >= requests.input_len
    tokens = min(1 if decoding else requests.input_len - sequence.computed, step.budget)
    if not tokens or sequence.sampled >= requests.output_len:
        return
    step.budget -= tokens
    sequence.computed += tokens
    sampled = sequence.computed >= requests.input_len
    sequence.sampled += sampled
    if sampled and not decoding:
        step.prompts.append(sequence.number)
    step.pieces[tokens, sequence.computed, decoding, sampled] += 1
