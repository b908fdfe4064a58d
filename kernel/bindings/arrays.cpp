#include "bindings/arrays.hpp"

#include <numpy/arrayscalars.h>

#include <array>
#include <type_traits>

#include "bindings/handed_over.hpp"

namespace armlet {

namespace {

constexpr double exact = 0x1p53;  // from here on a double may not be the integer: Python's reader says so

// How one of numpy's own numbers lies in memory, alone and in an array.
struct NumberType {
    const char* name;
    NPY_TYPES number;
    double (*read)(PyObject*);
    bool (*read_all)(const char*, std::ptrdiff_t, std::size_t, double*);
    PyTypeObject* type = nullptr;
};

template <typename T>
bool read_strided(const char* from, std::ptrdiff_t stride, std::size_t d, double* out) {
    const auto read = [&](std::ptrdiff_t apart) {  // a constant distance lets the compiler take several at once
        bool good = true;
        for (std::size_t j = 0; j < d; ++j) {
            const T value = *reinterpret_cast<const T*>(from + static_cast<std::ptrdiff_t>(j) * apart);
            out[j] = static_cast<double>(value);
            if constexpr (sizeof(T) == 8 && std::is_integral_v<T>) good &= std::fabs(out[j]) < exact;
        }
        return good;
    };
    return stride == sizeof(T) ? read(sizeof(T)) : read(stride);
}

template <typename Scalar>
NumberType number_type(const char* name, NPY_TYPES number) {
    using T = decltype(Scalar::obval);
    return {name, number, [](PyObject* o) { return static_cast<double>(reinterpret_cast<Scalar*>(o)->obval); },
            &read_strided<T>};
}

// float64 comes first, since most are. Python reads what is not in here: float16 and long double, dates, objects.
std::array<NumberType, 13> number_types{
    number_type<PyDoubleScalarObject>("double", NPY_DOUBLE),
    number_type<PyFloatScalarObject>("single", NPY_FLOAT),
    number_type<PyLongScalarObject>("long", NPY_LONG),
    number_type<PyIntScalarObject>("intc", NPY_INT),
    number_type<PyBoolScalarObject>("bool_", NPY_BOOL),
    number_type<PyByteScalarObject>("byte", NPY_BYTE),
    number_type<PyUByteScalarObject>("ubyte", NPY_UBYTE),
    number_type<PyShortScalarObject>("short", NPY_SHORT),
    number_type<PyUShortScalarObject>("ushort", NPY_USHORT),
    number_type<PyUIntScalarObject>("uintc", NPY_UINT),
    number_type<PyULongScalarObject>("ulong", NPY_ULONG),
    number_type<PyLongLongScalarObject>("longlong", NPY_LONGLONG),
    number_type<PyULongLongScalarObject>("ulonglong", NPY_ULONGLONG),
};

PyTypeObject* type_of(nb::handle module, const char* name) {
    return reinterpret_cast<PyTypeObject*>(nb::object(module.attr(name)).release().ptr());
}

}  // namespace

void load_numpy() {
    nb::module_ numpy = nb::module_::import_("numpy");
    ndarray_type = type_of(numpy, "ndarray"), numpy_integer = type_of(numpy, "integer");
    for (NumberType& one : number_types) one.type = type_of(numpy, one.name);
}

namespace {

[[noreturn]] void raise(nb::handle type, const std::string& message) {
    PyErr_SetString(type.ptr(), message.c_str());
    throw nb::python_error();
}

}  // namespace

// A refusal is an error of Armlet's own, and also the built-in one that fits.
void fail(PyObject* type, const std::string& message) {
    const char* own = type == PyExc_ValueError  ? "InvalidValueError"
                      : type == PyExc_TypeError ? "InvalidTypeError"
                      : type == PyExc_KeyError  ? "UnknownNameError"
                                                : nullptr;
    own ? fail(own, message) : raise(type, message);
}

void set_policy_error(const std::domain_error& error) noexcept {
    try {
        fail("PolicyError", std::string(error.what()) + "; the sums of an arm are damaged or out of any scale");
    } catch (nb::python_error& failed) {
        failed.restore();
    }
}

void fail(const char* error, const std::string& message) { raise(handed_over(Part::errors).attr(error), message); }

namespace {

// A number of an everyday type, whatever its size. Subclasses of Python's own may say another number than they hold.
bool read_number(PyObject* value, double& out) {
    if (PyFloat_CheckExact(value)) return out = PyFloat_AS_DOUBLE(value), true;
    if (PyBool_Check(value)) return out = value == Py_True, true;
    if (PyLong_CheckExact(value)) {
        out = PyLong_AsDouble(value);
        if (out == -1.0 && PyErr_Occurred()) PyErr_Clear(), out = INFINITY;
        return std::fabs(out) < exact;
    }
    for (const NumberType& one : number_types)
        if (Py_TYPE(value) == one.type) {
            out = one.read(value);
            return one.number == NPY_DOUBLE || one.number == NPY_FLOAT || std::fabs(out) < exact;
        }
    return false;
}

bool read_sequence(PyObject* x, std::size_t d, double* out) {
    if (!PyList_CheckExact(x) && !PyTuple_CheckExact(x)) return false;
    if (static_cast<std::size_t>(PySequence_Fast_GET_SIZE(x)) != d) return false;
    PyObject** items = PySequence_Fast_ITEMS(x);
    for (std::size_t j = 0; j < d; ++j)
        if (!read_number(items[j], out[j])) return false;
    return true;
}

bool read_array(nb::handle x, std::size_t d, double* out) {
    if (Py_TYPE(x.ptr()) != ndarray_type) return false;
    const auto* array = reinterpret_cast<PyArrayObject*>(x.ptr());
    const auto* descr = PyArray_DESCR(array);
    if (PyArray_NDIM(array) != 1 || static_cast<std::size_t>(PyArray_DIM(array, 0)) != d) return false;
    if (!PyArray_ISNBO(descr->byteorder) || !(PyArray_FLAGS(array) & NPY_ARRAY_ALIGNED)) return false;
    for (const NumberType& one : number_types) {
        if (descr->type_num != one.number) continue;
        const bool good = one.read_all(PyArray_BYTES(array), PyArray_STRIDE(array, 0), d, out);
        for (std::size_t j = 0; one.number == NPY_BOOL && j < d; ++j) out[j] = out[j] != 0.0;  // any byte but 0 is true
        return good;
    }
    return false;
}

bool is_small(const double* x, std::size_t d) {
    bool small = true;
    for (std::size_t j = 0; j < d; ++j) small &= std::fabs(x[j]) <= largest_value;
    return small;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
    std::string out = "(";
    for (const auto n : shape) out += std::to_string(n) + ", ";
    if (shape.size() > 1)
        out.resize(out.size() - 2);
    else if (shape.size() == 1)
        out.resize(out.size() - 1);
    return out + ")";
}

std::string describe(nb::handle h) {
    if (!nb::hasattr(h, "dtype") || !nb::hasattr(h, "shape")) return "a " + text(h.type().attr("__name__"));
    std::string out = text(h.attr("dtype")) + " of shape " + text(h.attr("shape"));
    if (nb::hasattr(h, "flags") && !nb::cast<bool>(h.attr("flags").attr("c_contiguous"))) out += ", not C-contiguous";
    return out;
}

const void* exactly(nb::handle h, const char* name, NPY_TYPES type, const char* dtype,
                    const std::vector<std::size_t>& shape) {
    bool right = is_plain(h, type, static_cast<int>(shape.size()));
    const auto* array = reinterpret_cast<PyArrayObject*>(h.ptr());
    for (std::size_t i = 0; right && i < shape.size(); ++i)
        right = static_cast<std::size_t>(PyArray_DIM(array, static_cast<int>(i))) == shape[i];
    if (!right)
        fail(PyExc_TypeError, std::string(name) + " must be a C-contiguous " + dtype + " numpy array of shape " +
                                  shape_text(shape) + "; got " + describe(h) +
                                  ". Convert it first: numpy.ascontiguousarray(" + name + ", dtype='" + dtype + "')");
    return PyArray_DATA(array);
}

}  // namespace

double read_reward(nb::handle value, const char* name) {
    double out;
    if (read_number(value.ptr(), out) && std::fabs(out) <= largest_value) return out;
    return nb::cast<double>(handed_over(Part::read_reward)(value, name));
}

double read_weight(nb::handle value) {
    double out;
    if (read_number(value.ptr(), out) && out >= least_weight && out <= largest_value) return out;
    return nb::cast<double>(handed_over(Part::read_weight)(value));
}

bool read_row(nb::handle x, std::size_t d, double* out) {
    return (read_array(x, d, out) || read_sequence(x.ptr(), d, out)) && is_small(out, d);
}

bool read_named(nb::handle x, const std::vector<nb::object>& names, double* out) {
    const std::size_t d = names.size();
    if (!PyDict_CheckExact(x.ptr()) || static_cast<std::size_t>(PyDict_GET_SIZE(x.ptr())) != d) return false;
    for (std::size_t j = 0; j < d; ++j) {
        PyObject* value = PyDict_GetItemWithError(x.ptr(), names[j].ptr());
        if (value && read_number(value, out[j])) continue;
        PyErr_Clear();  // a key may refuse to be compared: Python's reader meets the same
        return false;
    }
    return is_small(out, d);
}

std::size_t row_length(nb::handle x) {
    if (PyList_CheckExact(x.ptr()) || PyTuple_CheckExact(x.ptr()))
        return static_cast<std::size_t>(PySequence_Fast_GET_SIZE(x.ptr()));
    if (!is_plain(x, NPY_DOUBLE, 1)) return 0;
    return static_cast<std::size_t>(PyArray_DIM(reinterpret_cast<PyArrayObject*>(x.ptr()), 0));
}

const double* doubles(nb::handle array, const char* name, std::initializer_list<std::size_t> shape) {
    return static_cast<const double*>(exactly(array, name, NPY_DOUBLE, "float64", shape));
}

const bool* booleans(nb::handle array, const char* name, std::size_t length) {
    return static_cast<const bool*>(exactly(array, name, NPY_BOOL, "bool", {length}));
}

// Numpy has two types of 64 bits, long and long long; arrays that the kernel gave are of the second.
const std::int64_t* integers(nb::handle array, const char* name, std::size_t length) {
    static_assert(sizeof(npy_longlong) == sizeof(std::int64_t));
    const NPY_TYPES type = is_plain(array, NPY_LONGLONG, 1) ? NPY_LONGLONG : NPY_INT64;
    return static_cast<const std::int64_t*>(exactly(array, name, type, "int64", {length}));
}

std::size_t count_rows(nb::handle array, const char* name, std::size_t columns) {
    std::size_t rows = 0;
    if (Py_TYPE(array.ptr()) == ndarray_type) {
        const auto* a = reinterpret_cast<PyArrayObject*>(array.ptr());
        if (PyArray_NDIM(a) == 2) rows = static_cast<std::size_t>(PyArray_DIM(a, 0));
    }
    doubles(array, name, {rows, columns});
    return rows;
}

}  // namespace armlet
