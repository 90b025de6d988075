//go:build !race

package emit

const raced = false
