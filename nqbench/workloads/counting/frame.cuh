// A frame is the work space of one thread: four words per board row, somewhere in memory.
//
// A *cursor* is a row number already multiplied and offset so that `words[cursor + constant]` is
// the address: moving one row is one addition, and no quantity costs further arithmetic.
#pragma once
#include "config.cuh"

// `kFree` is the row's open columns; in Somers' loop the same slot holds the candidate stack.
enum Quantity { kColumns, kLeft, kRight, kFree };

// Order of the words of one block: word(q, row, thread) =
//   thread * kThreadStride + row * kRowStride + offset(q).
template <Config C> struct Order {
    static constexpr int kRows = C.rows_reserved();
    static constexpr int kBlock = C.block_size;
    static constexpr bool kInterleaved = C.layout == Layout::interleaved;
    static constexpr bool kArrays = C.storage == Storage::arrays;
    static constexpr bool kRecords = C.storage == Storage::records;
    // A row's four words stay together, also between the threads' rows: one access moves them all.
    static constexpr bool kVector = C.storage == Storage::vector;
    static_assert(!(kVector && C.layout == Layout::padded), "an odd stride is not aligned");
    static_assert(!(kInterleaved && C.storage == Storage::chunk),
                  "interleaved chunks are interleaved arrays");

    static constexpr int kOwnWords = kArrays ? kRows : 4 * kRows;
    // An odd stride is coprime with the number of banks: equal rows of a warp never collide.
    static constexpr int kThreadStride = kInterleaved                 ? (kVector ? 4 : 1)
                                         : C.layout == Layout::padded ? (kOwnWords | 1)
                                                                      : kOwnWords;
    static constexpr int kRowStride = (kRecords || kVector ? 4 : 1) * (kInterleaved ? kBlock : 1);
    static constexpr int kSection = (kInterleaved ? kOwnWords : kThreadStride) * kBlock;

    static constexpr bool kStackOnly = C.memory == Memory::shared_stack;
    static constexpr int kWords =
        (kArrays && !kStackOnly ? 4 * kSection : kSection) + C.stack_extra() * kBlock;

    __device__ static constexpr int offset(Quantity q) {
        if (kStackOnly) return 0;
        if (kArrays) return q * kSection;
        if (kVector) return q;
        if (kRecords) return q * (kInterleaved ? kBlock : 1);
        // feinbube2010: the stack comes first in the chunk of Listing 8, last in that of Listing 9.
        return (C.rows == Rows::max ? (q + 1) % 4 : q) * kRows;
    }
};

template <Config C> __device__ __forceinline__ unsigned* shared_words() {
    if constexpr (C.allocation == Allocation::at_launch) {
        if constexpr (Order<C>::kVector) {
            extern __shared__ uint4 launch_rows[];
            return reinterpret_cast<unsigned*>(launch_rows);
        } else {
            extern __shared__ unsigned launch_words[];
            return launch_words;
        }
    } else if constexpr (Order<C>::kVector) {
        __shared__ uint4 fixed_rows[Order<C>::kWords / 4];
        return reinterpret_cast<unsigned*>(fixed_rows);
    } else {
        __shared__ unsigned fixed_words[Order<C>::kWords];
        return fixed_words;
    }
}

// The same pointer to global memory, its origin hidden from the optimizer. Otherwise the offset of
// the block is merged with the cursor, and every access pays for 64-bit arithmetic on a number that
// is the same for the whole block.
__device__ __forceinline__ unsigned* opaque(unsigned* global) {
    unsigned* same;
    asm("mov.u64 %0, %1;" : "=l"(same) : "l"(global));
    __builtin_assume(__isGlobal(same));
    return same;
}

// All four quantities in shared memory, or in the block's region of a global buffer.
template <Config C, Memory M = C.memory> class Frame {
    using O = Order<C>;
    unsigned* words_;
    int origin_;

public:
    static constexpr int kStep = O::kRowStride;
    static constexpr int kStackStep = kStep;
    static constexpr bool kDirect = true;  // whether a loop may go past the frame to its memory

    __device__ explicit Frame(unsigned* scratch) {
        if constexpr (M == Memory::shared) {
            words_ = shared_words<C>();
        } else {
            words_ = opaque(scratch + static_cast<size_t>(blockIdx.x) * O::kWords);
        }
        origin_ = static_cast<int>(threadIdx.x) * O::kThreadStride;
    }
    __device__ int row(int number) const { return origin_ + number * kStep; }
    __device__ int stack(int number) const { return row(number); }
    template <Quantity Q> __device__ unsigned load(int cursor) const {
        return words_[cursor + O::offset(Q)];
    }
    template <Quantity Q> __device__ void store(int cursor, unsigned value) {
        words_[cursor + O::offset(Q)] = value;
    }
    __device__ unsigned pop(int cursor) const { return load<kFree>(cursor); }
    __device__ void push(int cursor, unsigned value) { store<kFree>(cursor, value); }
    // In shared memory, as an instruction takes it.
    __device__ unsigned address(int cursor) const {
        return static_cast<unsigned>(__cvta_generic_to_shared(words_ + cursor));
    }
    // All four words at once (Storage::vector).
    __device__ uint4 load_row(int cursor) const {
        return *reinterpret_cast<const uint4*>(words_ + cursor);
    }
    __device__ void store_row(int cursor, uint4 words) {
        *reinterpret_cast<uint4*>(words_ + cursor) = words;
    }
};

// Thread-local arrays. The row is known at run time only, so they cannot become registers: the
// compiler places them in local memory, word-interleaved by the hardware.
template <Config C> class Frame<C, Memory::local> {
    unsigned columns_[C.rows_reserved()], left_[C.rows_reserved()], right_[C.rows_reserved()];
    unsigned free_[C.rows_reserved() + C.stack_extra()];

public:
    static constexpr int kStep = 1;
    static constexpr int kStackStep = 1;
    static constexpr bool kDirect = false;

    __device__ explicit Frame(unsigned*) {}
    __device__ int row(int number) const { return number; }
    __device__ int stack(int number) const { return number; }
    template <Quantity Q> __device__ unsigned load(int cursor) const {
        if constexpr (Q == kColumns) return columns_[cursor];
        if constexpr (Q == kLeft) return left_[cursor];
        if constexpr (Q == kRight) return right_[cursor];
        if constexpr (Q == kFree) return free_[cursor];
    }
    template <Quantity Q> __device__ void store(int cursor, unsigned value) {
        if constexpr (Q == kColumns) columns_[cursor] = value;
        if constexpr (Q == kLeft) left_[cursor] = value;
        if constexpr (Q == kRight) right_[cursor] = value;
        if constexpr (Q == kFree) free_[cursor] = value;
    }
    __device__ unsigned pop(int cursor) const { return free_[cursor]; }
    __device__ void push(int cursor, unsigned value) { free_[cursor] = value; }
};

// Candidates in shared memory, the three masks thread-local (feinbube2010, Listing 5). No member
// but the arrays: a scalar beside an array that is indexed at run time would end up in local memory
// too.
template <Config C> class Frame<C, Memory::shared_stack> {
    using O = Order<C>;
    unsigned columns_[C.rows_reserved()], left_[C.rows_reserved()], right_[C.rows_reserved()];

public:
    static constexpr int kStep = 1;
    static constexpr int kStackStep = O::kRowStride;
    static constexpr bool kDirect = false;

    __device__ explicit Frame(unsigned*) {}
    __device__ int row(int number) const { return number; }
    __device__ int stack(int number) const {
        return static_cast<int>(threadIdx.x) * O::kThreadStride + number * kStackStep;
    }
    template <Quantity Q> __device__ unsigned load(int cursor) const {
        if constexpr (Q == kColumns) return columns_[cursor];
        if constexpr (Q == kLeft) return left_[cursor];
        if constexpr (Q == kRight) return right_[cursor];
        if constexpr (Q == kFree) return pop(stack(cursor));
    }
    template <Quantity Q> __device__ void store(int cursor, unsigned value) {
        if constexpr (Q == kColumns) columns_[cursor] = value;
        if constexpr (Q == kLeft) left_[cursor] = value;
        if constexpr (Q == kRight) right_[cursor] = value;
        if constexpr (Q == kFree) push(stack(cursor), value);
    }
    __device__ unsigned pop(int cursor) const { return shared_words<C>()[cursor]; }
    __device__ void push(int cursor, unsigned value) { shared_words<C>()[cursor] = value; }
};
