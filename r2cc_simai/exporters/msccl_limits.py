"""What an MSCCL program may be at most, and the refusal of what is more.

The numbers are those of the runtime (github.com/microsoft/msccl at b23e9cd: src/include/msccl.h, src/include/devcomm.h,
src/graph/xml.h): array sizes, and the widths of the integers that hold offsets and thread-block numbers.
"""

from r2cc_simai.errors import InputError

MOST_CHANNELS = 32
MOST_STEPS = 256  # of a thread block
MOST_BLOCKS = 128  # of a GPU; a dependency names its thread block in a signed byte
MOST_BLOCKS_PER_CHANNEL = 32
MOST_CHUNKS = 32_767  # nchunksperloop; an offset is a signed 16-bit number
MOST_COUNT = 71  # chunks that a step moves
MOST_NODES = 4096  # XML elements that one GPU reads: its own, and those of the other GPUs' heads
MOST_GPUS = 1023
LONGEST_NAME = 63

LARGEST_ELEMENT = 8  # bytes, of an NCCL data type; a chunk is a whole number of elements
# Protocol Simple with NCCL's default buffer of 4 MiB: eight slots, of which a chunk takes four.
CHUNKS_UNDER_WAY = 2
CHUNK_BYTES = 2 * 2**20


class UnevenError(InputError):
    """The schedule has no common chunk at this size; at another it may have one."""


def check_blocks(gpu: int, steps: list[int], channels: list[int], gpus: int) -> None:
    """Refuses the program of a GPU whose thread blocks have so many `steps` and lie on such `channels`.

    Raises:
        InputError: it is more than MSCCL has room for.
    """
    for block, count in enumerate(steps):
        if count > MOST_STEPS:
            raise InputError(f"MSCCL: gpu {gpu} tb {block} has {count} steps; at most {MOST_STEPS} are possible")
    if len(steps) > MOST_BLOCKS:
        raise InputError(f"MSCCL: gpu {gpu} has {len(steps)} thread blocks; at most {MOST_BLOCKS} are possible")
    for channel in set(channels):
        count = channels.count(channel)
        if count > MOST_BLOCKS_PER_CHANNEL:
            raise InputError(
                f"MSCCL: gpu {gpu} has {count} thread blocks on channel {channel}; "
                f"at most {MOST_BLOCKS_PER_CHANNEL} are possible"
            )
    elements = 1 + gpus + len(steps) + sum(steps)
    if elements > MOST_NODES:
        raise InputError(f"MSCCL: gpu {gpu} reads {elements} XML elements; at most {MOST_NODES} are possible")


def check_size(chunks: int, gpus: int, channels: int) -> None:
    """Refuses a program of so many chunks, GPUs and channels.

    Raises:
        InputError: it is more than MSCCL has room for.
    """
    for count, most, what in (
        (chunks, MOST_CHUNKS, "chunks in the buffer"),
        (gpus, MOST_GPUS, "GPUs"),
        (channels, MOST_CHANNELS, "channels"),
    ):
        if not 1 <= count <= most:
            raise InputError(f"MSCCL: {count} {what}; from 1 to {most} are possible")
