"""Numbers of Chakra's schema (et_def.proto as in the package mlc-chakra 1.0.0) and names of the attributes in use."""

from enum import IntEnum

VERSION = b"0.0.4"


class NodeType(IntEnum):
    """What a node is."""

    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    COMM_SEND = 5
    COMM_RECV = 6
    COMM_COLL = 7


class CommType(IntEnum):
    """What a COMM_COLL node does."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


# Fields of GlobalMetadata, Node and AttributeProto.
METADATA_VERSION, METADATA_ATTR = 1, 2
NODE_ID, NODE_NAME, NODE_TYPE, NODE_CTRL_DEPS, NODE_DATA_DEPS = 1, 2, 3, 4, 5
NODE_DURATION_MICROS, NODE_ATTR = 7, 10
ATTR_NAME, ATTR_INT32, ATTR_INT64, ATTR_UINT64, ATTR_BOOL, ATTR_STRING = 1, 7, 9, 13, 27, 29
