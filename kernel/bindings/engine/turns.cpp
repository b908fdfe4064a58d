#include "bindings/engine/turns.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

#include "bindings/arrays.hpp"

namespace armlet {

namespace {

using namespace std::chrono_literals;

// Wakes anyone who waits for any bandit. The child of a fork gets a new one: the mutex may have been copied locked.
struct Bell {
    std::mutex mutex;
    std::condition_variable rung;
    std::uint64_t rings = 0;

    void ring() {
        {
            const std::lock_guard lock(mutex);
            ++rings;
        }
        rung.notify_all();
    }
    // Until it rings, but now and then somebody should look for signals.
    void wait(std::uint64_t seen) {
        std::unique_lock lock(mutex);
        rung.wait_for(lock, 50ms, [&] { return rings != seen; });
    }
};

// All of this is looked at under the interpreter lock.
Bell* bell = new Bell;
std::size_t waiters = 0;
std::size_t forks = 0;  // threads that are about to fork
std::set<Turns*> all;
thread_local std::size_t held = 0;  // turns that this thread has, of any bandit

constexpr auto fork_patience = 30s;

unsigned long this_thread() { return PyThread_get_thread_ident(); }

template <typename Free>
void wait_until(Free&& is_free) {
    ++waiters;
    struct Gone {
        ~Gone() { --waiters; }
    } gone;
    while (!is_free()) {
        const auto seen = bell->rings;
        {
            nb::gil_scoped_release release;
            bell->wait(seen);
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
}

void left() {
    --held;
    if (waiters > 0) bell->ring();
}

}  // namespace

Turns::Turns() { all.insert(this); }
Turns::~Turns() { all.erase(this); }

bool Turns::is_free(Wish wish, Thread me) const {
    if (owner_ && owner_ != me) return false;
    const auto others = [&](Thread thread) { return thread && thread != me; };
    switch (wish) {
        case Wish::look:
        case Wish::decide:
            return true;
        case Wish::look_settled:
        case Wish::learn:
            return !others(learner_);
        case Wish::same_arms:
            return held > 0 || (forks == 0 && changers_ == 0);
        case Wish::learn_rows:
            return !others(learner_) && (held > 0 || (forks == 0 && changers_ == 0));
        case Wish::look_whole:
        case Wish::change_whole:
            break;
    }
    return !others(learner_) && std::none_of(readers_.begin(), readers_.end(), others) && (held > 0 || forks == 0);
}

void Turns::refuse_reentry(Wish wish, Thread me) const {
    if (torn_)
        fail("BusyError",
             "the process forked while another thread was in the middle of this bandit; load it from a file instead");
    const bool looks = wish == Wish::look || wish == Wish::look_settled || wish == Wish::look_whole;
    if (looks || (wish == Wish::same_arms && owner_ != me)) return;
    if (owner_ == me)
        fail("BusyError",
             "the bandit is asking its policy, so the policy may look at the bandit but not change it: no decide, no "
             "learn, no change of arms");
    if (learner_ == me && wish != Wish::decide)
        fail("BusyError", "the bandit is learning a batch in this thread; change it when the batch is over");
    const bool in_batch = std::find(readers_.begin(), readers_.end(), me) != readers_.end();
    if (wish == Wish::change_whole && in_batch)
        fail("BusyError", "the bandit is deciding a batch in this thread; change its arms when the batch is over");
}

void Turns::await(Wish wish) const {
    const Thread me = this_thread();
    refuse_reentry(wish, me);
    if (is_free(wish, me)) return;
    const bool whole = wish == Wish::look_whole || wish == Wish::change_whole;
    changers_ += whole;
    struct Gone {
        const Turns& turns;
        bool whole;
        ~Gone() { turns.changers_ -= whole; }
    } gone{*this, whole};
    wait_until([&] { return is_free(wish, me); });
    refuse_reentry(wish, me);  // it may have been torn meanwhile
}

Turns::Whole::Whole(Turns& turns, Purpose purpose) : turns_(turns) {
    turns.await(purpose == Purpose::look ? Wish::look_whole : Wish::change_whole);
    turns.owner_ = this_thread();
    ++turns.depth_, ++held;
}

Turns::Whole::~Whole() {
    if (--turns_.depth_ == 0) turns_.owner_ = 0;
    left();
}

Turns::SameArms::SameArms(Turns& turns) : turns_(turns) {
    turns.await(Wish::same_arms);
    turns.readers_.push_back(this_thread());
    ++held;
}

Turns::SameArms::~SameArms() {
    const auto mine = std::find(turns_.readers_.begin(), turns_.readers_.end(), this_thread());
    turns_.readers_.erase(mine);
    left();
}

Turns::Learning::Learning(Turns& turns) : turns_(turns) {
    turns.await(Wish::learn_rows);
    turns.learner_ = this_thread();
    ++held;
}

Turns::Learning::~Learning() {
    turns_.learner_ = 0;
    left();
}

bool Turns::is_idle(Thread me) const {
    const auto others = [&](Thread thread) { return thread && thread != me; };
    return !others(owner_) && !others(learner_) && std::none_of(readers_.begin(), readers_.end(), others);
}

// New calls wait from here on, those under way end; a thread that has a turn gets others, so nobody waits in a ring.
void Turns::before_fork() {
    ++forks;
    const Thread me = this_thread();
    const auto limit = std::chrono::steady_clock::now() + fork_patience;
    wait_until([&] {
        return std::all_of(all.begin(), all.end(), [&](const Turns* turns) { return turns->is_idle(me); }) ||
               std::chrono::steady_clock::now() > limit;
    });
}

void Turns::after_fork(bool is_child) {
    if (!is_child) {
        --forks;
        if (waiters > 0) bell->ring();
        return;
    }
    forks = waiters = 0;
    bell = new Bell;
    const Thread me = this_thread();
    for (Turns* turns : all) {
        turns->torn_ = turns->torn_ || !turns->is_idle(me);
        turns->changers_ = 0;
    }
}

}  // namespace armlet
