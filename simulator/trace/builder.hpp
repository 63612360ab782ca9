// From the messages of nodes to a Trace: what each has to have, and the roles of groups and peers.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/dependencies.hpp"
#include "trace/finding.hpp"
#include "trace/node_fields.hpp"
#include "trace/trace.hpp"

namespace simai {

class TraceBuilder {
  public:
    // For about so many nodes. The file has to live as long as the builder, which knows names by their place in it.
    TraceBuilder(Bytes file, std::size_t nodes, Trace& trace, Findings& findings)
        : file_(file), trace_(trace), findings_(findings) {
        trace_.nodes.reserve(nodes);
        begins_.reserve(nodes);
        deps_.offsets.reserve(nodes + 1);
    }

    // Adds the node of a message that begins at a byte of the file. Throws WireError.
    void add(const WireReader& message, std::size_t begin);

    // Once all nodes are there.
    void finish() { resolve_dependencies(deps_, begins_, trace_, findings_); }

  private:
    enum class Need : std::uint8_t { kOptional, kRequired };

    NodeType type_of(const NodeFields& fields);
    void add_compute(const NodeFields& fields, TraceNode& node);
    void add_communication(const NodeFields& fields, TraceNode& node);
    void add_collective(const NodeFields& fields, TraceNode& node);
    void add_message(const NodeFields& fields, TraceNode& node);
    void check_element_count(const NodeFields& fields, const TraceNode& node);
    // The value of an attribute, or `otherwise` after a finding if it makes no sense.
    std::int64_t integer(const NodeFields& fields, Known known, Need need, std::int64_t otherwise);
    double duration(const NodeFields& fields);
    int name_role(std::string_view name);
    int group_role(const NodeFields& fields);
    int peer_role(std::int64_t rank);

    template <typename Reason>
    void find(const Check& check, Reason reason) {
        findings_.add(check, id_, static_cast<std::int64_t>(trace_.nodes.size()), begins_.back(), reason);
    }

    Bytes file_;
    Trace& trace_;
    Findings& findings_;
    NodeFields fields_;  // of the node being added
    RawDependencies deps_;
    std::vector<std::int64_t> begins_;  // byte of each node
    std::int64_t id_ = 0;               // likewise
    NodeType type_ = NodeType::kInvalid;
    std::unordered_map<std::string_view, int> names_;
    std::unordered_map<std::string, int> groups_;
    std::unordered_map<std::int64_t, int> peers_;
};

// "COMM_SEND", as Chakra calls it; empty for a number that it does not have.
std::string_view name_of(NodeType type);
std::string_view name_of(CommType type);

}  // namespace simai
