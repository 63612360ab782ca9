#include "trace/fingerprint.hpp"

#include <bit>
#include <string>

namespace simai {
namespace {

// The finaliser of MurmurHash3 (A. Appleby, public domain): every bit of the input changes half of the output's.
constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDULL;
    x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ULL;
    return x ^ (x >> 33);
}

// Two chains with different constants: 128 bits together.
class Hasher {
  public:
    template <typename T>
    void add(T value) {
        const auto bits = static_cast<std::uint64_t>(value);
        first_ = mix(first_ ^ bits) + 0x9E3779B97F4A7C15ULL;
        second_ = std::rotl((second_ + bits) * 0xD6E8FEB86659FD93ULL, 29);
    }
    void add_text(const std::string& text) {
        add(text.size());
        for (const char c : text) add(static_cast<std::uint8_t>(c));
    }
    std::array<std::uint64_t, 2> result() const { return {mix(first_), mix(second_)}; }

  private:
    std::uint64_t first_ = 1, second_ = 2;
};

std::array<std::uint64_t, 2> digest_of(const Trace& trace) {
    Hasher hasher;
    for (const TraceNode& node : trace.nodes) {
        hasher.add(static_cast<std::uint64_t>(node.type) | static_cast<std::uint64_t>(node.on_cpu) << 8 |
                   static_cast<std::uint64_t>(static_cast<std::uint8_t>(node.comm)) << 16 |
                   static_cast<std::uint64_t>(node.name) << 32);
        hasher.add(static_cast<std::uint64_t>(static_cast<std::uint32_t>(node.group)) << 32 |
                   static_cast<std::uint32_t>(node.peer));
        hasher.add(node.bytes);
        hasher.add(node.tag);
        hasher.add(node.num_ops);
        hasher.add(node.tensor_bytes);
        hasher.add(std::bit_cast<std::uint64_t>(node.duration_s));
    }
    for (const std::uint32_t offset : trace.dep_offsets) hasher.add(offset);
    for (const std::uint32_t dep : trace.deps) hasher.add(dep);
    for (const std::string& name : trace.names) hasher.add_text(name);
    hasher.add(trace.groups.size());
    // The group of all ranks is the same for every rank; a class either uses it or does not.
    for (std::size_t role = 0; role < trace.groups.size(); ++role)
        if (trace.groups[role] == "0") hasher.add(role);
    hasher.add(trace.peers.size());
    return hasher.result();
}

}  // namespace

Fingerprint fingerprint(const Trace& trace) {
    Fingerprint found;
    found.digest = digest_of(trace);
    found.collectives.assign(trace.groups.size(), 0);
    found.sends.assign(trace.peers.size(), 0);
    found.receives.assign(trace.peers.size(), 0);
    for (const TraceNode& node : trace.nodes) {
        const auto bytes = static_cast<std::uint64_t>(node.bytes);
        if (node.type == NodeType::kColl && node.group >= 0) {
            std::uint64_t& chain = found.collectives[static_cast<std::size_t>(node.group)];
            chain = mix(mix(chain + 1 + static_cast<std::uint64_t>(node.comm)) ^ bytes);
        } else if ((node.type == NodeType::kSend || node.type == NodeType::kRecv) && node.peer >= 0) {
            auto& sums = node.type == NodeType::kSend ? found.sends : found.receives;
            sums[static_cast<std::size_t>(node.peer)] += mix(mix(static_cast<std::uint64_t>(node.tag) + 1) ^ bytes);
        }
    }
    return found;
}

}  // namespace simai
