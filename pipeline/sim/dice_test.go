package sim_test

import (
	"math/rand/v2"
	"time"
)

// A seed decides all of a run: each choice is drawn from it.
type seed uint64

// at draws a number for one event, told apart by who does what to which key for
// the how-manieth time. It does not depend on what else was drawn before, so
// that two runs of which one has an event more are alike up to there.
func (s seed) at(who, op, key string, n int) uint64 {
	h := uint64(s)*0x9e3779b97f4a7c15 + uint64(n)
	for _, part := range [...]string{who, op, key} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 0x100000001b3
		}
		h = scramble(h ^ 0xff)
	}
	return scramble(h)
}

// scramble is the finalizer of splitmix64.
func scramble(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// between maps a draw to a duration from low to high, to the nanosecond, so
// that hardly two events share an instant; short ones are likelier.
func between(draw uint64, low, high time.Duration) time.Duration {
	share := float64(draw>>11) / (1 << 53)
	return low + time.Duration(share*share*float64(high-low))
}

// chance reports whether a draw falls within a share.
func chance(draw uint64, share float64) bool { return float64(draw>>11)/(1<<53) < share }

// A dice is the stream from which the driver draws, one goroutine alone.
type dice struct{ *rand.Rand }

func (s seed) dice(stream uint64) dice { return dice{rand.New(rand.NewPCG(uint64(s), stream))} }

func (d dice) chance(share float64) bool { return d.Float64() < share }

// from draws a whole number from low to high.
func (d dice) from(low, high int) int { return low + d.IntN(high-low+1) }

func (d dice) between(low, high time.Duration) time.Duration { return between(d.Uint64(), low, high) }

// one draws an element.
func one[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }
