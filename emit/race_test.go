//go:build race

package emit

// The race detector makes sync.Pool lose buffers.
const raced = true
