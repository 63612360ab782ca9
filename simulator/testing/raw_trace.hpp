// Chakra files for tests, byte by byte.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "trace/schema.hpp"
#include "trace/wire.hpp"

namespace simai::testing {

inline std::string varint(std::uint64_t value) {
    std::string out;
    for (; value > 0x7F; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
    return out + static_cast<char>(value);
}

inline std::string number(std::uint32_t field, std::uint64_t value) { return varint(field << 3) + varint(value); }

inline std::string block(std::string_view bytes) { return varint(bytes.size()) + std::string(bytes); }

inline std::string bytes(std::uint32_t field, std::string_view value) { return varint(field << 3 | 2) + block(value); }

inline std::string attribute(std::string_view name, const std::string& value) {
    return bytes(schema::kNodeAttr, bytes(1, name) + value);
}

// An int64_val.
inline std::string integer(std::string_view name, std::int64_t value) {
    return attribute(name, number(9, static_cast<std::uint64_t>(value)));
}

inline std::string text(std::string_view name, std::string_view value) { return attribute(name, bytes(29, value)); }

// A node behind its length: id, type, data dependencies, and further fields.
inline std::string node(std::uint64_t id, std::uint64_t type, std::initializer_list<std::uint64_t> deps = {},
                        const std::string& more = {}) {
    std::string list;
    for (const std::uint64_t dep : deps) list += varint(dep);
    return block(number(schema::kNodeId, id) + number(schema::kNodeType, type) +
                 (list.empty() ? "" : bytes(schema::kNodeDataDeps, list)) + more);
}

inline std::string comp(std::uint64_t id, std::uint64_t micros, std::initializer_list<std::uint64_t> deps = {}) {
    return node(id, 4, deps, number(schema::kNodeDuration, micros));
}

inline std::string coll(std::uint64_t id, std::int64_t type, std::int64_t size, std::string_view group,
                        std::initializer_list<std::uint64_t> deps = {}) {
    return node(id, 7, deps, integer("comm_type", type) + integer("comm_size", size) + text("pg_name", group));
}

inline std::string send(std::uint64_t id, std::int64_t dst, std::int64_t size, std::int64_t tag,
                        std::initializer_list<std::uint64_t> deps = {}) {
    return node(id, 5, deps, integer("comm_dst", dst) + integer("comm_size", size) + integer("comm_tag", tag));
}

inline std::string recv(std::uint64_t id, std::int64_t src, std::int64_t size, std::int64_t tag,
                        std::initializer_list<std::uint64_t> deps = {}) {
    return node(id, 6, deps, integer("comm_src", src) + integer("comm_size", size) + integer("comm_tag", tag));
}

inline std::string metadata(std::string_view version = schema::kVersion) { return block(bytes(1, version)); }

inline std::string file(std::initializer_list<std::string> nodes) {
    std::string out = metadata();
    for (const std::string& one : nodes) out += one;
    return out;
}

inline Bytes view(std::string_view data) { return {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()}; }

}  // namespace simai::testing
