// An attribute of a node: a name and a value of one of thirty types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trace/schema.hpp"
#include "trace/wire.hpp"

namespace simai {

struct Attribute {
    std::string_view name;
    schema::Value type = schema::Value::kNone;
    std::uint64_t bits = 0;  // of a number, as its type has them
    Bytes bytes;             // of a string, of bytes, or of a list

    std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

// Throws WireError. A field whose wire type is not that of its number counts as unknown, as protobuf has it.
Attribute read_attribute(WireReader reader);

// Whether a type is a list; `element` is then the type of its members.
constexpr bool is_list(schema::Value type) {
    return type >= schema::Value::kDouble && static_cast<unsigned>(type) % 2 == 0;
}
constexpr schema::Value element(schema::Value list) {
    return static_cast<schema::Value>(static_cast<unsigned>(list) - 1);
}

// Whether a type is one of a single whole number (bool included).
constexpr bool is_integer(schema::Value type) {
    return type >= schema::Value::kInt32 && type <= schema::Value::kBool && !is_list(type);
}

// The value of an integer type; nothing where it is above 2^63 - 1.
std::optional<std::int64_t> to_integer(schema::Value type, std::uint64_t bits);

// The wire type of one number of a type, or kLength.
constexpr WireType wire_type(schema::Value type) {
    using schema::Value;
    if (is_list(type) || type >= Value::kString) return WireType::kLength;
    if (type == Value::kDouble || type == Value::kFixed64 || type == Value::kSfixed64) return WireType::kFixed64;
    if (type == Value::kFloat || type == Value::kFixed32 || type == Value::kSfixed32) return WireType::kFixed32;
    return WireType::kVarint;
}

// "a string", "a list", ... for messages.
std::string describe(schema::Value type);

}  // namespace simai
