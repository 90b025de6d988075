//go:build it

// Command benchcompact is package it/bench/compact as a program.
package main

import (
	"github.com/ledgerlake/ledgerlake/it/bench"
	"github.com/ledgerlake/ledgerlake/it/bench/compact"
)

func main() { bench.Main("benchcompact", compact.Run) }
