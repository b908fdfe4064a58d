// Who may look at a bandit, and who may change it, while many threads hold it.
//
// A call of a compiled policy runs from its first look to its last change under the interpreter lock, so a look at
// these flags is all it needs. What spans several holds of that lock takes a turn: a policy written in Python, a change
// of arms, a batch in slices. All flags are read and written under the interpreter lock; waiting lets go of it.
// Before Python 3.12 any object that is made may begin a collection, whose finalisers are Python: see Uncollected.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

namespace armlet {

namespace nb = nanobind;

// No collection begins in this scope, so that no finaliser changes, or lets another thread change, what it looks at.
class Uncollected {
  public:
#if PY_VERSION_HEX < 0x030C0000
    Uncollected() : was_enabled_(PyGC_Disable() != 0) {}
    ~Uncollected() { was_enabled_ ? void(PyGC_Enable()) : void(); }

  private:
    bool was_enabled_;

  public:
#else
    Uncollected() {}
#endif
    Uncollected(const Uncollected&) = delete;
};

class Turns {
  public:
    Turns();
    ~Turns();
    Turns(const Turns&) = delete;

    // For a call that is over before the interpreter lock is let go of.
    void await_look() const {
        if (owner_ || torn_) await(Wish::look);
    }
    void await_settled() const {  // and that sees no half of a batch that another thread learns
        if (owner_ || learner_ || torn_) await(Wish::look_settled);
    }
    void await_decide() const {
        if (owner_ || torn_) await(Wish::decide);
    }
    void await_learn() const {
        if (owner_ || learner_ || torn_) await(Wish::learn);
    }

    // The whole bandit for one thread. A thread that has it may have it again to look, not to change.
    class Whole {
      public:
        enum class Purpose { look, change };
        Whole(Turns& turns, Purpose purpose);
        ~Whole();
        Whole(const Whole&) = delete;

      private:
        Turns& turns_;
    };

    // For a batch that decides or reads: others may decide and learn between its slices, but arms stay.
    class SameArms {
      public:
        explicit SameArms(Turns& turns);
        ~SameArms();
        SameArms(const SameArms&) = delete;

      private:
        Turns& turns_;
    };

    // For a batch that learns: others may decide between its slices, but nobody else changes anything.
    class Learning {
      public:
        explicit Learning(Turns& turns);
        ~Learning();
        Learning(const Learning&) = delete;

      private:
        Turns& turns_;
    };

    // Around a fork: the child must not inherit the middle of somebody's call.
    static void before_fork();
    static void after_fork(bool is_child);

  private:
    using Thread = unsigned long;
    enum class Wish { look, look_settled, decide, learn, same_arms, learn_rows, look_whole, change_whole };

    void await(Wish wish) const;
    bool is_free(Wish wish, Thread me) const;
    void refuse_reentry(Wish wish, Thread me) const;
    bool is_idle(Thread me) const;  // no other thread is in the middle of something

    Thread owner_ = 0, learner_ = 0;
    std::size_t depth_ = 0;
    std::vector<Thread> readers_;       // one entry for each batch that decides or reads
    mutable std::size_t changers_ = 0;  // how many wait for the whole; new batches let them go first
    bool torn_ = false;                 // the process forked while another thread had it
};

}  // namespace armlet
