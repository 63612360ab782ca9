#include "trace/attribute.hpp"

namespace simai {

using schema::Value;

Attribute read_attribute(WireReader reader) {
    Attribute found;
    while (!reader.done()) {
        const WireField field = reader.field();
        if (field.number == static_cast<std::uint32_t>(Value::kName)) {
            if (field.type == WireType::kLength) found.name = field.text();
        } else if (field.number >= static_cast<std::uint32_t>(Value::kDouble) &&
                   field.number <= static_cast<std::uint32_t>(Value::kBytesList)) {
            const auto type = static_cast<Value>(field.number);
            if (wire_type(type) != field.type) continue;
            found.type = type;
            found.bits = field.value;
            found.bytes = field.bytes;
        }
    }
    return found;
}

std::optional<std::int64_t> to_integer(Value type, std::uint64_t bits) {
    switch (type) {
        case Value::kInt32:
        case Value::kSfixed32:
            return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
        case Value::kUint32:
        case Value::kFixed32:
            return static_cast<std::int64_t>(static_cast<std::uint32_t>(bits));
        case Value::kSint32:
            bits = static_cast<std::uint32_t>(bits);
            [[fallthrough]];
        case Value::kSint64:
            return static_cast<std::int64_t>((bits >> 1) ^ (0 - (bits & 1)));
        case Value::kBool:
            return bits != 0;
        case Value::kUint64:
        case Value::kFixed64:
            if (bits >> 63 != 0) return std::nullopt;
            [[fallthrough]];
        default:
            return static_cast<std::int64_t>(bits);
    }
}

std::string describe(Value type) {
    switch (type) {
        case Value::kNone:
            return "empty";
        case Value::kDouble:
        case Value::kFloat:
            return "a floating-point number";
        case Value::kString:
            return "a string";
        case Value::kBytes:
            return "bytes";
        default:
            return is_list(type) ? "a list" : "a whole number";
    }
}

}  // namespace simai
