// In how many ways do signs make +-1 +-2 ... +-n zero? A thread takes the signs of the largest
// numbers from its own number and searches the others depth-first.
//
// Bound  whether a branch is given up that can no longer reach zero

template <bool Bound>
__global__ void signs(int n, int depth, unsigned long long* counts) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >> depth) return;  // the last block may have more threads than there are prefixes
    int sum = 0;
    for (int k = 0; k < depth; ++k) sum += thread >> k & 1 ? n - k : k - n;

    const int largest = n - depth;
    int next = largest;     // number that gets its sign next
    unsigned negative = 0;  // bit k: number k has a minus
    unsigned long long count = 0;
    for (;;) {
        const bool hopeless = Bound && abs(sum) > next * (next + 1) / 2;
        if (next == 0 || hopeless) {
            count += next == 0 && sum == 0;
            while (++next <= largest && (negative >> next & 1)) {  // back over every minus
                sum += next;
                negative ^= 1u << next;
            }
            if (next > largest) break;
            sum -= 2 * next;
            negative |= 1u << next--;
        } else {
            sum += next--;
        }
    }
    counts[thread] = count;
}
