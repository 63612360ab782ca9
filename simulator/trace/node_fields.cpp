#include "trace/node_fields.hpp"

#include <algorithm>

#include "trace/schema.hpp"

namespace simai {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Known::kCount)> kNames{
    "is_cpu_op", "comm_type", "comm_size",   "comm_src",       "comm_dst",     "comm_tag",
    "pg_name",   "num_ops",   "tensor_size", "duration_nanos", "involved_dim",
};

void add_attribute(const WireReader& reader, NodeFields& node) {
    const Attribute attribute = read_attribute(reader);
    const auto* found = std::find(kNames.begin(), kNames.end(), attribute.name);
    if (found != kNames.end()) node.set(static_cast<Known>(found - kNames.begin()), attribute);
}

}  // namespace

std::string_view name_of(Known known) { return kNames[static_cast<std::size_t>(known)]; }

void read_varints(const WireReader& reader, const WireField& field, std::vector<std::uint64_t>& out) {
    if (field.type == WireType::kVarint) out.push_back(field.value);
    if (field.type != WireType::kLength) return;
    for (WireReader list = reader.within(field); !list.done();) out.push_back(list.varint());
}

void read_node(WireReader reader, NodeFields& node, std::vector<std::uint64_t>& deps) {
    node.clear();
    while (!reader.done()) {
        const WireField field = reader.field();
        if (field.type == WireType::kVarint) {
            if (field.number == schema::kNodeId) node.id = field.value;
            if (field.number == schema::kNodeType) node.type = field.value;
            if (field.number == schema::kNodeDuration) node.duration_micros = field.value;
        } else if (field.type == WireType::kLength) {
            if (field.number == schema::kNodeAttr) add_attribute(reader.within(field), node);
            if (field.number == schema::kNodeName) node.name = field.text();
            if (field.number == schema::kNodeInputs) node.inputs = field.bytes;
            if (field.number == schema::kNodeOutputs) node.outputs = field.bytes;
        }
        if (field.number == schema::kNodeCtrlDeps || field.number == schema::kNodeDataDeps)
            read_varints(reader, field, deps);
    }
}

}  // namespace simai
