//go:build it

// Command benchverify is package it/bench/verify as a program.
package main

import (
	"github.com/ledgerlake/ledgerlake/it/bench"
	"github.com/ledgerlake/ledgerlake/it/bench/verify"
)

func main() { bench.Main("benchverify", verify.Run) }
