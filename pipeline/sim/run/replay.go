package main

// replay makes a bubble of testing/synctest run the same way each time: with
// GOMAXPROCS=1 what is left to chance are the order in which select looks at
// its cases, the order of timers of one instant, the order of maps, and what
// the wall clock does to the scheduler and to mutexes. The first two are drawn
// from a stream that the simulation seeds; the others become constant.
var replay = []patch{
	{
		"std/runtime/rand.go", "// cheaprandn is like cheaprand() % n but faster.\n", `// simState is the state of the stream from which a bubble draws.
//
//go:linkname simState
var simState uint64

// simRand returns the stream's next number in a bubble, cheaprand elsewhere.
func simRand() uint32 {
	if getg().bubble == nil {
		return cheaprand()
	}
	simState += 0x9e3779b97f4a7c15
	z := simState
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return uint32((z ^ z>>31) >> 32)
}

// cheaprandn is like cheaprand() % n but faster.
`,
	},
	{"std/runtime/select.go", "j := cheaprandn(uint32(norder + 1))", "j := simRand() % uint32(norder+1)"},
	{"std/runtime/time.go", "t.rand = cheaprand()", "t.rand = simRand()"},
	{"std/runtime/rand.go", "func maps_rand() uint64 {\n\treturn rand()", "func maps_rand() uint64 {\n\treturn 0x5851f42d4c957f2d"},
	{"std/runtime/rand.go", "func rand32() uint32 {\n\treturn uint32(rand())", "func rand32() uint32 {\n\treturn 0x4c957f2d"},
	{"std/runtime/alg.go", "key[i] = bootstrapRand()", "key[i] = uint64(i+1) * 0x9e3779b97f4a7c15"},
	{"std/runtime/alg.go", "hashkey[i] = uintptr(bootstrapRand())", "hashkey[i] = uintptr(uint64(i+1) * 0x9e3779b97f4a7c15)"},
	{"std/runtime/proc.go", "const forcePreemptNS = 10 * 1000 * 1000 // 10ms", "const forcePreemptNS = 1 << 60"},
	{"std/runtime/runtime2.go", "\twaitReasonSyncCondWait:          true,\n", "\twaitReasonSyncCondWait:          true,\n\twaitReasonSyncMutexLock:         true,\n\twaitReasonSyncRWMutexRLock:      true,\n\twaitReasonSyncRWMutexLock:       true,\n"},
	{"std/internal/sync/mutex.go", "starvationThresholdNs = 1e6", "starvationThresholdNs = 1 << 60"},
}
