// Long work in slices: between them other threads run, and signals are looked at.
#pragma once
#include <nanobind/nanobind.h>

#include <chrono>

namespace armlet {

class Slices {
  public:
    // To be called after every row, with the interpreter lock held; throws what a signal handler raised. True if others
    // may have run meanwhile.
    bool pause() {
        if (++rows_ % 16 != 0 || Clock::now() - began_ < length) return false;
        let_others_run();
        began_ = Clock::now();
        return true;
    }
    static void let_others_run() {
        if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
        nanobind::gil_scoped_release release;
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr auto length = std::chrono::milliseconds(10);  // twice as long as the interpreter's own

    Clock::time_point began_ = Clock::now();
    std::size_t rows_ = 0;
};

}  // namespace armlet
