//go:build simreplay

package sim_test

import (
	"math/rand"
	_ "unsafe" // for go:linkname
)

// exact reports whether the runtime is the one in which a seed replays exactly.
const exact = true

// simState is the stream from which a bubble's selects and timers draw, in the
// runtime that pipeline/sim/run has patched.
//
//go:linkname simState runtime.simState
var simState uint64

// randPoolAt is where the broker's pool of random bytes is; at the end of the
// pool it is filled again, from the seeded crypto/rand.
//
//go:linkname randPoolAt github.com/twmb/franz-go/pkg/kfake.randPoolAt
var randPoolAt int

// seedRuntime seeds what the runtime and the broker draw.
func seedRuntime(seed uint64) {
	simState = seed
	randPoolAt = 4 << 10
	//lint:ignore SA1019 the broker draws from the global source
	rand.Seed(int64(seed))
}
