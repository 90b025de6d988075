//go:build it

// Command benchlookup is package it/bench/lookup as a program.
package main

import (
	"github.com/ledgerlake/ledgerlake/it/bench"
	"github.com/ledgerlake/ledgerlake/it/bench/lookup"
)

func main() { bench.Main("benchlookup", lookup.Run) }
