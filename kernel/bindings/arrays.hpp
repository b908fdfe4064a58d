// Between numpy and plain pointers: reads that never copy behind the caller's back, and results that own their memory.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/ndarraytypes.h>

#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace armlet {

namespace nb = nanobind;

// Of contexts, rewards, weights and settings; armlet/inputs/columns.py says why. NaN fails the comparison too.
constexpr double largest_value = 1e40;
constexpr double least_weight = 1e-40;
constexpr double largest_sum = 1e200;  // no sum of rows comes near it

inline PyTypeObject* ndarray_type = nullptr;
inline PyTypeObject* numpy_integer = nullptr;  // the base of numpy's own whole numbers
void load_numpy();

// Whether it is an array of this element type that can be read as it lies in memory. Looks at the array itself, which
// costs a fraction of asking for a buffer.
inline bool is_plain(nb::handle h, NPY_TYPES type, int ndim) {
    if (Py_TYPE(h.ptr()) != ndarray_type) return false;
    const auto* array = reinterpret_cast<PyArrayObject*>(h.ptr());
    constexpr int wanted = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;
    return PyArray_DESCR(array)->type_num == type && PyArray_ISNBO(PyArray_DESCR(array)->byteorder) &&
           PyArray_NDIM(array) == ndim && (PyArray_FLAGS(array) & wanted) == wanted;
}

// One context from an everyday object into out[0..d): a numpy row, or a list or tuple of numbers of Python or numpy.
// False if it is anything else, or holds a value that is not a finite number: Python then says what is wrong.
bool read_row(nb::handle x, std::size_t d, double* out);

// Also from a dict with exactly these keys.
bool read_named(nb::handle x, const std::vector<nb::object>& names, double* out);

// How many values such an object holds; 0 if it is none.
std::size_t row_length(nb::handle x);

// The data of an array argument, which must be exactly what is asked for.
const double* doubles(nb::handle array, const char* name, std::initializer_list<std::size_t> shape);
const bool* booleans(nb::handle array, const char* name, std::size_t length);
const std::int64_t* integers(nb::handle array, const char* name, std::size_t length);
inline std::vector<double> copy(const double* values, std::size_t n) { return {values, values + n}; }
// The number of rows of a matrix argument with `columns` columns.
std::size_t count_rows(nb::handle array, const char* name, std::size_t columns);

template <typename T>
using Array = nb::ndarray<nb::numpy, T>;

// An array that owns the values; `Out` is the element type that numpy sees.
template <typename Out, typename T>
Array<Out> to_numpy(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
    static_assert(sizeof(Out) == sizeof(T));
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Array<Out>(kept->data(), shape, owner);
}

inline Array<double> to_numpy(std::vector<double>&& values, std::initializer_list<std::size_t> shape) {
    return to_numpy<double>(std::move(values), shape);
}

// For properties that return such an array.
constexpr auto owned = nb::rv_policy::automatic;

// A finite reward, or a positive weight, from any number; Python says what is wrong with it.
double read_reward(nb::handle value, const char* name = "reward");
double read_weight(nb::handle value);

[[noreturn]] void fail(PyObject* type, const std::string& message);
// An error of Armlet's own, by its name.
[[noreturn]] void fail(const char* error, const std::string& message);
// Says in Python that a rule found no probabilities in the sums that it was given.
void set_policy_error(const std::domain_error& error) noexcept;

// str(h)
inline std::string text(nb::handle h) { return nb::str(h).c_str(); }
inline std::string quoted(nb::handle h) { return nb::repr(h).c_str(); }
inline std::string name_of_type(nb::handle h) { return text(h.type().attr("__name__")); }
// A float as Python prints it.
inline std::string text(double value) { return text(nb::float_(value)); }

}  // namespace armlet
