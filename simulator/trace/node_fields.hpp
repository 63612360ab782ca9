// The message of one node, taken apart but not yet judged.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/attribute.hpp"
#include "trace/wire.hpp"

namespace simai {

// The attributes that mean something here; all others are passed over.
enum class Known : std::uint8_t {
    kIsCpuOp,
    kCommType,
    kCommSize,
    kCommSrc,
    kCommDst,
    kCommTag,
    kPgName,
    kNumOps,
    kTensorSize,
    kDurationNanos,
    kInvolvedDim,
    kCount,
};

std::string_view name_of(Known known);

struct NodeFields {
    std::uint64_t id = 0;
    std::uint64_t type = 0;
    std::string_view name;
    std::uint64_t duration_micros = 0;
    Bytes inputs, outputs;  // IOInfo messages

    // Nothing where the node has no such attribute; the first where it has several.
    const Attribute* attribute(Known known) const {
        const auto k = static_cast<unsigned>(known);
        return (present_ >> k & 1) != 0 ? &attributes_[k] : nullptr;
    }
    void set(Known known, const Attribute& attribute) {
        const auto k = static_cast<unsigned>(known);
        if ((present_ >> k & 1) != 0) return;
        present_ |= 1U << k;
        attributes_[k] = attribute;
    }

    // Empties it for the next node; what the attributes held may stay.
    void clear() {
        id = type = duration_micros = 0;
        name = {};
        inputs = outputs = {};
        present_ = 0;
    }

  private:
    std::uint32_t present_ = 0;
    std::array<Attribute, static_cast<std::size_t>(Known::kCount)> attributes_;
};

// Reads one node; its dependencies, data and control alike, are appended to `deps`. Throws WireError.
void read_node(WireReader reader, NodeFields& node, std::vector<std::uint64_t>& deps);

// Appends the numbers of a repeated field of varints: one, or a packed list.
void read_varints(const WireReader& reader, const WireField& field, std::vector<std::uint64_t>& out);

}  // namespace simai
