#include "trace/reader.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "trace/builder.hpp"
#include "trace/schema.hpp"
#include "trace/text.hpp"

namespace simai {
namespace {

struct Magic {
    std::string_view bytes;
    const char* reason;
};

constexpr std::array<Magic, 4> kCompressed{{
    {"\x1F\x8B", "compressed with gzip; decompress it first (gunzip)"},
    {"\x28\xB5\x2F\xFD", "compressed with zstd; decompress it first (unzstd)"},
    {"BZh", "compressed with bzip2; decompress it first (bunzip2)"},
    {"\xFD"
     "7zXZ",
     "compressed with xz; decompress it first (unxz)"},
}};

// What a file is whose bytes are no metadata.
std::string what_else(Bytes file) {
    const auto printable = [](std::uint8_t byte) { return (byte >= 0x20 && byte < 0x7F) || (byte >= 9 && byte <= 13); };
    const Bytes head = file.first(std::min<std::size_t>(file.size(), 64));
    return std::all_of(head.begin(), head.end(), printable) ? "it is text; " : "";
}

[[noreturn]] void no_metadata(Bytes file, std::size_t offset) {
    throw TraceError(checks::kNoMetadata,
                     "it does not begin with Chakra's GlobalMetadata; " + what_else(file) + "a .et file is wanted",
                     offset);
}

std::string version_of(WireReader metadata, Bytes file) {
    std::string version;
    while (!metadata.done()) {
        const std::size_t offset = metadata.offset();
        const WireField field = metadata.field();
        if (field.number != schema::kMetadataVersion && field.number != schema::kMetadataAttr) continue;
        // Those of a node have other types, so a file that begins with one is told apart.
        if (field.type != WireType::kLength) no_metadata(file, offset);
        if (field.number == schema::kMetadataVersion) version = repaired_utf8(field.text());
    }
    return version;
}

// How many messages are to come, up to where they break off.
std::size_t count_messages(WireReader reader) {
    std::size_t count = 0;
    try {
        while (!reader.done() && !reader.block().empty()) ++count;
    } catch (const WireError&) {  // the reading proper will tell
    }
    return count;
}

void read_nodes(Bytes file, WireReader& reader, Reading& out) {
    TraceBuilder builder(file, count_messages(reader), out.trace, out.findings);
    while (!reader.done()) {
        const std::size_t begin = reader.offset();
        const Bytes message = reader.block();
        if (message.empty()) throw WireError("an empty message where a node is wanted", begin);
        builder.add({file.data(), message}, begin);
    }
    builder.finish();
}

}  // namespace

Bytes read_metadata(Bytes file, WireReader& reader) {
    if (file.empty()) throw TraceError(checks::kEmpty, "empty; it must begin with the metadata", 0);
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    for (const Magic& magic : kCompressed)
        if (text.starts_with(magic.bytes)) throw TraceError(checks::kCompressed, magic.reason, 0);
    if (file.size() > std::numeric_limits<std::uint32_t>::max())
        throw TraceError(checks::kRange, "larger than 4 GiB", 0);
    try {
        const Bytes metadata = reader.block();
        for (WireReader fields(file.data(), metadata); !fields.done();) fields.field();
        return metadata;
    } catch (const WireError& error) {
        no_metadata(file, error.offset());
    }
}

Reading read_trace(Bytes file) {
    Reading out;
    WireReader reader(file);
    try {
        const Bytes metadata = read_metadata(file, reader);
        out.version = version_of({file.data(), metadata}, file);
        if (out.version != schema::kVersion)
            out.findings.add(checks::kVersion, -1, -1, 0, [&] {
                return "version " + quoted(out.version) + " is unknown; read as " + schema::kVersion;
            });
        read_nodes(file, reader, out);
        if (out.trace.nodes.empty()) out.findings.add(checks::kNoNodes, -1, -1, -1, [] { return "it has no nodes"; });
    } catch (const TraceError& error) {
        out.findings.add(error.check(), -1, -1, static_cast<std::int64_t>(error.offset()),
                         [&] { return std::string(error.what()); });
    } catch (const WireError& error) {
        const std::vector<TraceNode>& nodes = out.trace.nodes;
        out.findings.add(
            checks::kNoTrace, -1, static_cast<std::int64_t>(nodes.size()), static_cast<std::int64_t>(error.offset()),
            [&] {
                const std::string after = nodes.empty() ? "" : " (after node " + std::to_string(nodes.back().id) + ")";
                return "broken or cut off at byte " + std::to_string(error.offset()) + after + ": " + error.what();
            });
        out.trace = {};  // half a trace is none
    }
    return out;
}

}  // namespace simai
