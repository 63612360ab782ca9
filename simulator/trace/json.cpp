#include "trace/json.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <vector>

#include "trace/attribute.hpp"
#include "trace/builder.hpp"
#include "trace/node_fields.hpp"
#include "trace/reader.hpp"
#include "trace/schema.hpp"
#include "trace/text.hpp"

namespace simai {
namespace {

using schema::Value;

constexpr std::uint64_t kNodeTypes = 8;

void put_string(std::string& out, std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    const std::string clean = is_utf8(text) ? std::string(text) : repaired_utf8(text);
    out += '"';
    for (const char c : clean) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += "\\u00";
            out += kHex[static_cast<unsigned char>(c) >> 4];
            out += kHex[static_cast<unsigned char>(c) & 15];
        } else {
            out += c;
        }
    }
    out += '"';
}

template <typename T>
void put_number(std::string& out, T value) {
    std::array<char, 40> text;
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
    out.append(text.data(), end);
}

// JSON has no infinities and no NaN: they become strings.
template <typename T>
void put_real(std::string& out, T value) {
    if (std::isfinite(value))
        put_number(out, value);
    else
        out += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
}

void put_hex(std::string& out, Bytes bytes) {
    constexpr std::string_view kHex = "0123456789abcdef";
    out += '"';
    for (const std::uint8_t byte : bytes) {
        out += kHex[byte >> 4];
        out += kHex[byte & 15];
    }
    out += '"';
}

void put_scalar(std::string& out, Value type, std::uint64_t bits, Bytes bytes) {
    if (type == Value::kString)
        put_string(out, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    else if (type == Value::kBytes)
        put_hex(out, bytes);
    else if (type == Value::kDouble)
        put_real(out, std::bit_cast<double>(bits));
    else if (type == Value::kFloat)
        put_real(out, std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    else if (type == Value::kBool)
        out += bits != 0 ? "true" : "false";
    else if (const auto value = to_integer(type, bits))
        put_number(out, *value);
    else
        put_number(out, bits);
}

// The members of a list: strings one by one, numbers one by one or packed.
void put_list(std::string& out, const std::uint8_t* file, Value type, Bytes message) {
    bool first = true;
    const auto put = [&](std::uint64_t bits, Bytes bytes) {
        if (!first) out += ", ";
        first = false;
        put_scalar(out, type, bits, bytes);
    };
    out += '[';
    for (WireReader list(file, message); !list.done();) {
        const WireField field = list.field();
        if (field.number != schema::kListValues) continue;
        if (field.type == wire_type(type)) {
            put(field.value, field.bytes);
        } else if (field.type == WireType::kLength) {
            for (WireReader packed = list.within(field); !packed.done();)
                put(wire_type(type) == WireType::kVarint    ? packed.varint()
                    : wire_type(type) == WireType::kFixed32 ? packed.fixed<std::uint32_t>()
                                                            : packed.fixed<std::uint64_t>(),
                    {});
        }
    }
    out += ']';
}

void put_attribute(std::string& out, const std::uint8_t* file, const Attribute& attribute) {
    put_string(out, attribute.name);
    out += ": ";
    if (attribute.type == Value::kNone)
        out += "null";
    else if (is_list(attribute.type))
        put_list(out, file, element(attribute.type), attribute.bytes);
    else
        put_scalar(out, attribute.type, attribute.bits, attribute.bytes);
}

// "name": {...} of all attributes of a message.
void put_attributes(std::string& out, const std::uint8_t* file, Bytes message, std::uint32_t number) {
    out += "\"attributes\": {";
    bool first = true;
    for (WireReader reader(file, message); !reader.done();) {
        const WireField field = reader.field();
        if (field.number != number || field.type != WireType::kLength) continue;
        if (!first) out += ", ";
        first = false;
        put_attribute(out, file, read_attribute(reader.within(field)));
    }
    out += '}';
}

void put_key(std::string& out, std::string_view name) {
    out += ", \"";
    out += name;
    out += "\": ";
}

void put_io(std::string& out, const std::uint8_t* file, std::string_view name, Bytes message) {
    if (message.empty()) return;
    put_key(out, name);
    std::array<std::string_view, 4> texts;
    for (WireReader reader(file, message); !reader.done();) {
        const WireField field = reader.field();
        if (field.type == WireType::kLength && field.number < texts.size()) texts[field.number] = field.text();
    }
    out += "{\"values\": ";
    put_string(out, texts[schema::kIoValues]);
    put_key(out, "shapes");
    put_string(out, texts[schema::kIoShapes]);
    put_key(out, "types");
    put_string(out, texts[schema::kIoTypes]);
    out += '}';
}

// Control or data dependencies, in the order of the file.
void put_dependencies(std::string& out, const std::uint8_t* file, std::string_view name, Bytes message,
                      std::uint32_t number) {
    std::vector<std::uint64_t> ids;
    for (WireReader reader(file, message); !reader.done();) {
        const WireField field = reader.field();
        if (field.number == number) read_varints(reader, field, ids);
    }
    put_key(out, name);
    out += '[';
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i > 0) out += ", ";
        put_number(out, ids[i]);
    }
    out += ']';
}

std::uint64_t start_of(const std::uint8_t* file, Bytes message) {
    std::uint64_t start = 0;
    for (WireReader reader(file, message); !reader.done();) {
        const WireField field = reader.field();
        if (field.number == schema::kNodeStart && field.type == WireType::kVarint) start = field.value;
    }
    return start;
}

void put_node(std::string& out, const std::uint8_t* file, Bytes message) {
    std::vector<std::uint64_t> deps;
    NodeFields fields;
    read_node({file, message}, fields, deps);
    out += "{\"id\": ";
    put_number(out, fields.id);
    put_key(out, "name");
    put_string(out, fields.name);
    put_key(out, "type");
    if (fields.type < kNodeTypes) {
        out += '"';
        out += name_of(static_cast<NodeType>(fields.type));
        out += '"';
    } else {
        put_number(out, static_cast<std::int64_t>(fields.type));
    }
    put_dependencies(out, file, "ctrl_deps", message, schema::kNodeCtrlDeps);
    put_dependencies(out, file, "data_deps", message, schema::kNodeDataDeps);
    put_key(out, "start_time_micros");
    put_number(out, start_of(file, message));
    put_key(out, "duration_micros");
    put_number(out, fields.duration_micros);
    put_io(out, file, "inputs", fields.inputs);
    put_io(out, file, "outputs", fields.outputs);
    out += ", ";
    put_attributes(out, file, message, schema::kNodeAttr);
    out += '}';
}

}  // namespace

JsonPiece metadata_json(Bytes file) {
    WireReader reader(file);
    const Bytes metadata = read_metadata(file, reader);
    std::string_view version;
    for (WireReader fields(file.data(), metadata); !fields.done();) {
        const WireField field = fields.field();
        if (field.number == schema::kMetadataVersion) version = field.text();
    }
    JsonPiece piece{"{\"version\": ", reader.offset()};
    put_string(piece.text, version);
    piece.text += ", ";
    put_attributes(piece.text, file.data(), metadata, schema::kMetadataAttr);
    piece.text += '}';
    return piece;
}

JsonPiece nodes_json(Bytes file, std::size_t from, std::size_t limit) {
    WireReader reader(file.data(), file.subspan(std::min(from, file.size())));
    JsonPiece piece{"", from};
    while (!reader.done() && piece.text.size() < limit) {
        if (!piece.text.empty()) piece.text += ",\n";
        put_node(piece.text, file.data(), reader.block());
        piece.next = reader.offset();
    }
    return piece;
}

}  // namespace simai
