// Plain values as JSON, quickly enough for a line a decision: a float costs some 40 ns here and 500 in Python.
#include "bindings/log/json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "bindings/binding.hpp"

namespace armlet {

namespace {

constexpr int deepest = 32;  // what nests deeper is no event

class Writer {
  public:
    explicit Writer(std::string& out) : out_(out) {}
    void value(PyObject* given, int depth);
    void text(std::string_view given) { out_ += given; }
    void whole(long long given);
    void members(nb::dict given);

  private:
    void number(double given);
    void integer(PyObject* given);
    void string(PyObject* given);
    void sequence(PyObject* given, int depth);
    void object(PyObject* given, int depth);
    void member(PyObject* key, PyObject* item, int depth);

    std::string& out_;
};

void Writer::number(double given) {
    if (!std::isfinite(given)) throw nb::value_error("a number is not finite; JSON has no word for it");
    char digits[most_digits];
    out_.append(digits, write_number(digits, given));
}

void Writer::whole(long long given) {
    char digits[24];
    out_.append(digits, std::to_chars(digits, digits + sizeof digits, given).ptr);
}

void Writer::integer(PyObject* given) {
    int overflow = 0;
    const long long small = PyLong_AsLongLongAndOverflow(given, &overflow);
    if (!overflow) return whole(small);
    const nb::object digits = nb::steal(PyLong_Type.tp_repr(given));
    if (!digits.is_valid()) throw nb::python_error();
    out_ += PyUnicode_AsUTF8(digits.ptr());
}

void Writer::string(PyObject* given) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(given, &size);
    if (!bytes) throw nb::python_error();
    out_ += '"';
    const std::string_view text(bytes, static_cast<std::size_t>(size));
    std::size_t done = 0;  // most strings are written in one piece
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        out_ += text.substr(done, i - done);
        done = i + 1;
        constexpr char hex[] = "0123456789abcdef";
        if (c >= 0x20)
            out_ += '\\', out_ += text[i];
        else
            out_ += "\\u00", out_ += hex[c >> 4], out_ += hex[c & 15];
    }
    out_ += text.substr(done);
    out_ += '"';
}

void Writer::sequence(PyObject* given, int depth) {
    out_ += '[';
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given); ++i) {
        if (i) out_ += ',';
        value(PySequence_Fast_GET_ITEM(given, i), depth);
    }
    out_ += ']';
}

void Writer::member(PyObject* key, PyObject* item, int depth) {
    if (!PyUnicode_Check(key)) throw nb::type_error("a key is no str; JSON has no others");
    string(key);
    out_ += ':';
    value(item, depth);
}

void Writer::object(PyObject* given, int depth) {
    PyObject *key, *item;
    Py_ssize_t at = 0;
    out_ += '{';
    for (bool first = true; PyDict_Next(given, &at, &key, &item); first = false) {
        if (!first) out_ += ',';
        member(key, item, depth);
    }
    out_ += '}';
}

// Further members of an object that is open.
void Writer::members(nb::dict given) {
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(given.ptr(), &at, &key, &item);) {
        out_ += ',';
        member(key, item, deepest);
    }
}

void Writer::value(PyObject* given, int depth) {
    if (depth == 0) throw nb::value_error("a value nests too deeply; keep events flat");
    if (PyFloat_Check(given)) return number(PyFloat_AS_DOUBLE(given));
    if (PyUnicode_Check(given)) return string(given);
    if (given == Py_None) return void(out_ += "null");
    if (given == Py_True) return void(out_ += "true");
    if (given == Py_False) return void(out_ += "false");
    if (PyLong_Check(given)) return integer(given);
    if (PyList_Check(given) || PyTuple_Check(given)) return sequence(given, depth - 1);
    if (PyDict_Check(given)) return object(given, depth - 1);
    const std::string kind = Py_TYPE(given)->tp_name;
    throw nb::type_error(("a value is of type " + kind + ", which JSON has not").c_str());
}

nb::bytes json_bytes(nb::handle given) {
    std::string out;
    Writer(out).value(given.ptr(), deepest);
    return nb::bytes(out.data(), out.size());
}

// Table[j][b] is the value of byte b that j others follow.
constexpr auto crc_tables = [] {
    std::array<std::array<std::uint32_t, 256>, 16> table{};
    for (std::uint32_t b = 0; b < 256; ++b) {
        std::uint32_t value = b;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0);
        table[0][b] = value;
    }
    for (std::size_t j = 1; j < table.size(); ++j)
        for (std::size_t b = 0; b < 256; ++b) table[j][b] = (table[j - 1][b] >> 8) ^ table[0][table[j - 1][b] & 255];
    return table;
}();

nb::tuple json_line(long long seq, nb::str kind, long long at, nb::dict fields, std::uint32_t crc) {
    std::string out;
    out.reserve(512);
    crc = write_line(out, seq, kind.c_str(), at, fields, crc);
    return nb::make_tuple(nb::bytes(out.data(), out.size()), crc);
}

}  // namespace

std::size_t write_number(char* digits, double given) {
    const auto end = std::to_chars(digits, digits + most_digits - 2, given).ptr;
    const auto n = static_cast<std::size_t>(end - digits);
    if (std::string_view(digits, n).find_first_of(".e") != std::string_view::npos) return n;
    digits[n] = '.', digits[n + 1] = '0';
    return n + 2;
}

// Sixteen bytes a step.
std::uint32_t crc32(std::string_view data, std::uint32_t crc) {
    crc = ~crc;
    const auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(data[i])}; };
    std::size_t i = 0;
    for (; i + 16 <= data.size(); i += 16) {
        crc ^= byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24;
        std::uint32_t next = crc_tables[15][crc & 255] ^ crc_tables[14][crc >> 8 & 255] ^
                             crc_tables[13][crc >> 16 & 255] ^ crc_tables[12][crc >> 24];
        for (std::size_t j = 4; j < 16; ++j) next ^= crc_tables[15 - j][byte(i + j)];
        crc = next;
    }
    for (; i < data.size(); ++i) crc = (crc >> 8) ^ crc_tables[0][(crc ^ byte(i)) & 255];
    return ~crc;
}

std::uint32_t write_line(std::string& out, long long seq, const char* kind, long long at, nb::dict fields,
                         std::uint32_t crc) {
    const std::size_t begin = out.size();
    Writer writer(out);
    writer.text("{\"seq\":"), writer.whole(seq);
    writer.text(",\"kind\":\""), writer.text(kind), writer.text("\"");
    writer.text(",\"at\":"), writer.whole(at);
    writer.members(fields);
    crc = crc32(std::string_view(out).substr(begin), crc);
    char tail[20];
    std::snprintf(tail, sizeof tail, ",\"crc\":\"%08x\"}\n", static_cast<unsigned>(crc));
    writer.text(tail);
    return crc;
}

void bind_json(nb::module_& m) {
    m.def("json_bytes", &json_bytes, nb::arg("value").none(), nb::sig("def json_bytes(value: object) -> bytes"),
          "Plain values as JSON in UTF-8 without spaces, floats by the shortest digits that read back as they are.");
    m.def("json_line", &json_line, nb::arg("seq"), nb::arg("kind"), nb::arg("at"), nb::arg("fields"), nb::arg("crc"),
          nb::sig("def json_line(seq: int, kind: str, at: int, fields: dict[str, Any], crc: int) -> tuple[bytes, int]"),
          "An event as a line of a log, and the check value that it carries on from `crc`.");
}

}  // namespace armlet
