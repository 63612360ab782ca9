#include "trace/builder.hpp"

#include <charconv>
#include <limits>
#include <string>

#include "trace/element_count.hpp"
#include "trace/text.hpp"

namespace simai {
namespace {

constexpr std::int64_t kReservedTags = 500'000'000;  // ASTRA-sim's own collectives use tags from here on
constexpr std::int64_t kLargestGroup = std::numeric_limits<std::int32_t>::max();

constexpr std::array<std::string_view, 8> kNodeTypes{"INVALID", "METADATA",  "MEM_LOAD",  "MEM_STORE",
                                                     "COMP",    "COMM_SEND", "COMM_RECV", "COMM_COLL"};
constexpr std::array<std::string_view, 10> kCommTypes{
    "ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER", "SCATTER", "BROADCAST",
    "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"};

bool runs(CommType type) {
    return type == CommType::kAllReduce || type == CommType::kAllGather || type == CommType::kBroadcast ||
           type == CommType::kAllToAll || type == CommType::kReduceScatter;
}

bool is_communication(NodeType type) {
    return type == NodeType::kColl || type == NodeType::kSend || type == NodeType::kRecv;
}

std::string text_of(std::string_view view) { return std::string(view); }

}  // namespace

std::string_view name_of(NodeType type) { return kNodeTypes.at(static_cast<std::size_t>(type)); }

std::string_view name_of(CommType type) {
    return type == CommType::kNone ? std::string_view{} : kCommTypes.at(static_cast<std::size_t>(type));
}

void TraceBuilder::add(const WireReader& message, std::size_t begin) {
    begins_.push_back(static_cast<std::int64_t>(begin));
    NodeFields& fields = fields_;
    read_node(message, fields, deps_.ids);
    deps_.offsets.push_back(deps_.ids.size());
    TraceNode node;
    node.id = id_ = static_cast<std::int64_t>(fields.id);
    if (id_ < 0) {
        id_ = -1;
        find(checks::kRange, [&] { return "id " + std::to_string(fields.id) + "; it must be below 2^63"; });
    }
    node.type = type_ = type_of(fields);
    node.name = name_role(fields.name);
    node.on_cpu = integer(fields, Known::kIsCpuOp, Need::kOptional, 0) != 0;
    node.duration_s = type_ == NodeType::kInvalid ? 0 : duration(fields);
    if (type_ == NodeType::kComp) add_compute(fields, node);
    if (is_communication(type_)) add_communication(fields, node);
    trace_.nodes.push_back(node);
}

NodeType TraceBuilder::type_of(const NodeFields& fields) {
    if (fields.type >= kNodeTypes.size()) {
        find(checks::kNodeType, [&] {
            return "node type " + std::to_string(static_cast<std::int64_t>(fields.type)) +
                   "; Chakra has 1 (METADATA) to 7 (COMM_COLL)";
        });
        return NodeType::kInvalid;
    }
    const auto type = static_cast<NodeType>(fields.type);
    if (type == NodeType::kMemLoad || type == NodeType::kMemStore)
        find(checks::kMemoryNode,
             [&] { return text_of(name_of(type)) + " takes its duration_micros here; ASTRA-sim has a memory model"; });
    if (type == NodeType::kInvalid)
        find(checks::kInvalidNode, [] { return "a node without a type; it takes no time"; });
    return type;
}

void TraceBuilder::add_compute(const NodeFields& fields, TraceNode& node) {
    node.num_ops = integer(fields, Known::kNumOps, Need::kOptional, 0);
    node.tensor_bytes = integer(fields, Known::kTensorSize, Need::kOptional, 0);
    if (node.duration_s > 0) return;
    find(checks::kNoDuration, [&] {
        return node.num_ops > 0 ? "COMP with num_ops but no duration_micros; it takes no time"
                                : "COMP without duration_micros and without num_ops; it takes no time";
    });
}

void TraceBuilder::add_communication(const NodeFields& fields, TraceNode& node) {
    node.bytes = integer(fields, Known::kCommSize, Need::kRequired, 0);
    if (type_ == NodeType::kColl)
        add_collective(fields, node);
    else
        add_message(fields, node);
    const Attribute* size = fields.attribute(Known::kCommSize);
    if (size != nullptr && is_integer(size->type) && to_integer(size->type, size->bits) == 0)
        find(checks::kZeroBytes, [&] { return text_of(name_of(type_)) + " of 0 bytes: it only synchronises"; });
    check_element_count(fields, node);
}

void TraceBuilder::add_collective(const NodeFields& fields, TraceNode& node) {
    node.group = group_role(fields);
    const std::int64_t number = integer(fields, Known::kCommType, Need::kRequired, -1);
    const bool known = number >= 0 && number < static_cast<std::int64_t>(kCommTypes.size());
    const auto comm = known ? static_cast<CommType>(number) : CommType::kNone;
    if (runs(comm)) {
        node.comm = comm;
    } else if (number >= 0) {
        find(checks::kCommType, [&] {
            return "comm_type " + std::to_string(number) + (known ? " (" + text_of(name_of(comm)) + ")" : "") +
                   "; only ALL_REDUCE 0, ALL_GATHER 2, BROADCAST 5, ALL_TO_ALL 6 and REDUCE_SCATTER 7 can be run";
        });
    }
    if (comm == CommType::kBroadcast) find(checks::kReplayOnly, [] { return "BROADCAST: ASTRA-sim only replays it"; });
    const Attribute* dimensions = fields.attribute(Known::kInvolvedDim);
    if (dimensions == nullptr || dimensions->type != schema::Value::kBoolList || dimensions->bytes.empty()) return;
    std::vector<std::uint64_t> involved;
    for (WireReader list(file_.data(), dimensions->bytes); !list.done();) {
        const WireField field = list.field();
        if (field.number == schema::kListValues) read_varints(list, field, involved);
    }
    for (const std::uint64_t one : involved)
        if (one != 0) return;
    find(checks::kNoDimension, [] { return "involved_dim is false for every dimension; ASTRA-sim never ends it"; });
}

void TraceBuilder::add_message(const NodeFields& fields, TraceNode& node) {
    const Known peer = type_ == NodeType::kSend ? Known::kCommDst : Known::kCommSrc;
    const std::int64_t rank = integer(fields, peer, Need::kRequired, -1);
    if (rank >= 0) node.peer = peer_role(rank);
    node.tag = integer(fields, Known::kCommTag, Need::kRequired, 0);
    if (node.tag >= kReservedTags)
        find(checks::kReservedTag, [&] {
            return "comm_tag " + std::to_string(node.tag) + "; ASTRA-sim uses tags from " +
                   std::to_string(kReservedTags) + " on for its collectives";
        });
}

void TraceBuilder::check_element_count(const NodeFields& fields, const TraceNode& node) {
    const Attribute* size = fields.attribute(Known::kTensorSize);
    const bool given = size != nullptr && is_integer(size->type);
    const std::int64_t tensor_size = given ? to_integer(size->type, size->bits).value_or(-1) : -1;
    const std::string reason = element_count(node, file_.data(), fields.inputs, fields.outputs, tensor_size);
    if (!reason.empty()) find(checks::kElementCount, [&] { return reason; });
}

std::int64_t TraceBuilder::integer(const NodeFields& fields, Known known, Need need, std::int64_t otherwise) {
    const Attribute* attribute = fields.attribute(known);
    if (attribute == nullptr) {
        if (need == Need::kRequired)
            find(checks::kMissingAttribute,
                 [&] { return text_of(name_of(type_)) + " without " + text_of(name_of(known)); });
        return otherwise;
    }
    if (!is_integer(attribute->type)) {
        find(checks::kAttributeType, [&] {
            return text_of(name_of(known)) + " is " + describe(attribute->type) + "; a whole number is wanted";
        });
        return otherwise;
    }
    const auto value = to_integer(attribute->type, attribute->bits);
    if (value && *value >= 0) return *value;
    find(checks::kRange, [&] {
        const std::string written = value ? std::to_string(*value) : std::to_string(attribute->bits);
        return text_of(name_of(known)) + " " + written + "; it must lie from 0 to 2^63 - 1";
    });
    return otherwise;
}

double TraceBuilder::duration(const NodeFields& fields) {
    if (fields.attribute(Known::kDurationNanos) != nullptr)
        return static_cast<double>(integer(fields, Known::kDurationNanos, Need::kOptional, 0)) * 1e-9;
    if (fields.duration_micros >> 63 != 0) {
        find(checks::kRange, [&] {
            return "duration_micros " + std::to_string(fields.duration_micros) + "; a negative number as unsigned?";
        });
        return 0;
    }
    return static_cast<double>(fields.duration_micros) * 1e-6;
}

int TraceBuilder::name_role(std::string_view name) {
    const auto [at, added] = names_.try_emplace(name, static_cast<int>(trace_.names.size()));
    if (!added) return at->second;
    trace_.names.push_back(repaired_utf8(name));
    if (trace_.names.back() != name) find(checks::kText, [&] { return "its name " + quoted(name) + " is not UTF-8"; });
    return at->second;
}

int TraceBuilder::group_role(const NodeFields& fields) {
    std::int64_t group = 0;  // of all ranks
    if (const Attribute* attribute = fields.attribute(Known::kPgName); attribute != nullptr) {
        const std::string_view text = attribute->text();
        const char* end = text.data() + text.size();
        if (attribute->type != schema::Value::kString) {
            find(checks::kAttributeType,
                 [&] { return "pg_name is " + describe(attribute->type) + "; a string is wanted"; });
        } else if (!text.empty()) {
            const auto [at, error] = std::from_chars(text.data(), end, group);
            if (error != std::errc{} || at != end || group < 0 || group > kLargestGroup) {
                find(checks::kGroupName,
                     [&] { return "pg_name " + quoted(text) + "; the number of a group is wanted, as a string"; });
                return -1;
            }
        }
    }
    const auto [at, added] = groups_.try_emplace(std::to_string(group), static_cast<int>(trace_.groups.size()));
    if (added) trace_.groups.push_back(at->first);
    return at->second;
}

int TraceBuilder::peer_role(std::int64_t rank) {
    const auto [at, added] = peers_.try_emplace(rank, static_cast<int>(trace_.peers.size()));
    if (added) trace_.peers.push_back(rank);
    return at->second;
}

}  // namespace simai
