//go:build !simreplay

package sim_test

// exact reports whether the runtime is the one in which a seed replays exactly.
const exact = false

// seedRuntime seeds what the runtime draws: here nothing, for Go's own runtime
// cannot be told.
func seedRuntime(uint64) {}
