#include "trace/element_count.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "trace/schema.hpp"

namespace simai {
namespace {

// The number of elements of a shape "1024, 4096"; nothing if it is none.
std::optional<std::int64_t> product(std::string_view shape) {
    std::int64_t total = 1;
    while (true) {
        while (!shape.empty() && shape.front() == ' ') shape.remove_prefix(1);
        std::int64_t factor = 0;
        const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), factor);
        if (error != std::errc{} || factor < 0 || __builtin_mul_overflow(total, factor, &total)) return std::nullopt;
        shape.remove_prefix(static_cast<std::size_t>(end - shape.data()));
        while (!shape.empty() && shape.front() == ' ') shape.remove_prefix(1);
        if (shape.empty()) return total;
        if (shape.front() != ',') return std::nullopt;
        shape.remove_prefix(1);
    }
}

// Chakra's text of shapes is a nested list; its innermost lists are the shapes: [[1024, 4096], [[8], []]].
bool has_shape_of(std::string_view shapes, std::int64_t elements) {
    std::optional<std::size_t> start;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        if (shapes[i] == '[') start = i + 1;
        if (shapes[i] != ']') continue;
        if (start && product(shapes.substr(*start, i - *start)) == elements) return true;
        start.reset();
    }
    return false;
}

bool one_byte_elements(std::string_view types) {
    for (const std::string_view type : {"char", "bool", "Bool", "8"})
        if (types.find(type) != std::string_view::npos) return true;
    return false;
}

std::string equals_shape(std::int64_t bytes, const std::uint8_t* file, Bytes io, const char* which) {
    std::string_view shapes, types;
    for (WireReader reader(file, io); !reader.done();) {
        const WireField field = reader.field();
        if (field.type != WireType::kLength) continue;
        if (field.number == schema::kIoShapes) shapes = field.text();
        if (field.number == schema::kIoTypes) types = field.text();
    }
    if (one_byte_elements(types) || !has_shape_of(shapes, bytes)) return {};
    return "comm_size " + std::to_string(bytes) + " is the number of elements of one of its " + which +
           "; bytes are wanted";
}

}  // namespace

std::string element_count(const TraceNode& node, const std::uint8_t* file, Bytes inputs, Bytes outputs,
                          std::int64_t tensor_size) {
    if (node.bytes <= 0) return {};
    // Of an AllGather, `tensor_size` and `outputs` are those of the whole, and its part may well be a half of it.
    const bool gathers = node.comm == CommType::kAllGather;
    for (const std::int64_t width : {4, 2})
        if (!gathers && tensor_size > 0 && tensor_size % width == 0 && tensor_size / width == node.bytes)
            return "comm_size " + std::to_string(node.bytes) + " is a " + (width == 4 ? "quarter" : "half") +
                   " of tensor_size " + std::to_string(tensor_size) + ": elements instead of bytes?";
    std::string reason = equals_shape(node.bytes, file, inputs, "inputs");
    if (reason.empty() && !gathers) reason = equals_shape(node.bytes, file, outputs, "outputs");
    return reason;
}

}  // namespace simai
