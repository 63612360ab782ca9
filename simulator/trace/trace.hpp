// The trace of one rank: what it computes, sends and receives, and what waits for what.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace simai {

// Numbers as in Chakra's et_def.proto.
enum class NodeType : std::uint8_t {
    kInvalid = 0,
    kMetadata = 1,
    kMemLoad = 2,
    kMemStore = 3,
    kComp = 4,
    kSend = 5,
    kRecv = 6,
    kColl = 7,
};

enum class CommType : std::int8_t {
    kNone = -1,
    kAllReduce = 0,
    kReduce = 1,
    kAllGather = 2,
    kGather = 3,
    kScatter = 4,
    kBroadcast = 5,
    kAllToAll = 6,
    kReduceScatter = 7,
    kReduceScatterBlock = 8,
    kBarrier = 9,
};

struct TraceNode {
    std::int64_t id = 0;
    NodeType type = NodeType::kInvalid;
    CommType comm = CommType::kNone;
    bool on_cpu = false;     // is_cpu_op
    int name = -1;           // index into Trace::names
    int group = -1;          // role: index into Trace::groups
    int peer = -1;           // role: index into Trace::peers
    std::int64_t bytes = 0;  // comm_size: of a rank's input
    std::int64_t tag = 0;    // of a send or receive
    std::int64_t num_ops = 0;
    std::int64_t tensor_bytes = 0;
    double duration_s = 0;  // duration_nanos where it is given, else duration_micros
};

// Nodes are in the order of the file. Groups and peers are roles: in the order in which the rank first names them, so
// that ranks that do the same have equal nodes and differ in the two tables alone.
struct Trace {
    std::vector<TraceNode> nodes;
    std::vector<std::uint32_t> dep_offsets{0};
    std::vector<std::uint32_t>
        deps;                        // positions of nodes; control and data dependencies together, ascending, each once
    std::vector<std::string> names;  // distinct
    std::vector<std::string> groups;  // pg_name of each role; "" and "0" are the group of all ranks
    std::vector<std::int64_t> peers;  // rank of each role

    std::span<const std::uint32_t> deps_of(std::size_t node) const {
        return {deps.data() + dep_offsets[node], deps.data() + dep_offsets[node + 1]};
    }
};

}  // namespace simai
