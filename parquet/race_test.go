//go:build race

package parquet

// raceEnabled says that pools forget at random, and allocations say nothing.
const raceEnabled = true
