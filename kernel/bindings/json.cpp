// Plain values as JSON, quickly enough for a line a decision: a float costs some 40 ns here and 500 in Python.
#include <nanobind/nanobind.h>

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "bindings/binding.hpp"

namespace armlet {

namespace nb = nanobind;

namespace {

constexpr int deepest = 32;  // what nests deeper is no event

class Writer {
  public:
    void value(PyObject* given, int depth);
    const std::string& text() const { return out_; }

  private:
    void number(double given);
    void integer(PyObject* given);
    void string(PyObject* given);
    void sequence(PyObject* given, int depth);
    void object(PyObject* given, int depth);

    std::string out_;
};

// The shortest digits that read back as the same float, and never as an integer.
void Writer::number(double given) {
    if (!std::isfinite(given)) throw nb::value_error("a number is not finite; JSON has no word for it");
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, given).ptr;
    const std::string_view found(digits, static_cast<std::size_t>(end - digits));
    out_ += found;
    if (found.find_first_of(".e") == std::string_view::npos) out_ += ".0";
}

void Writer::integer(PyObject* given) {
    int overflow = 0;
    const long long small = PyLong_AsLongLongAndOverflow(given, &overflow);
    if (!overflow) {
        char digits[24];
        out_.append(digits, std::to_chars(digits, digits + sizeof digits, small).ptr);
        return;
    }
    const nb::object digits = nb::steal(PyLong_Type.tp_repr(given));
    if (!digits.is_valid()) throw nb::python_error();
    out_ += PyUnicode_AsUTF8(digits.ptr());
}

void Writer::string(PyObject* given) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(given, &size);
    if (!bytes) throw nb::python_error();
    out_ += '"';
    for (const char c : std::string_view(bytes, static_cast<std::size_t>(size))) {
        if (c == '"' || c == '\\') {
            out_ += '\\', out_ += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            constexpr char hex[] = "0123456789abcdef";
            out_ += "\\u00", out_ += hex[c >> 4], out_ += hex[c & 15];
        } else {
            out_ += c;
        }
    }
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

void Writer::object(PyObject* given, int depth) {
    PyObject *key, *item;
    Py_ssize_t at = 0;
    char before = '{';
    while (PyDict_Next(given, &at, &key, &item)) {
        if (!PyUnicode_Check(key)) throw nb::type_error("a key is no str; JSON has no others");
        out_ += before, before = ',';
        string(key);
        out_ += ':';
        value(item, depth);
    }
    if (before == '{') out_ += before;
    out_ += '}';
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
    Writer writer;
    writer.value(given.ptr(), deepest);
    return nb::bytes(writer.text().data(), writer.text().size());
}

}  // namespace

void bind_json(nb::module_& m) {
    m.def("json_bytes", &json_bytes, nb::arg("value").none(), nb::sig("def json_bytes(value: object) -> bytes"),
          "Plain values as JSON in UTF-8 without spaces, floats by the shortest digits that read back as they are.");
}

}  // namespace armlet
