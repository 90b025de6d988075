// Command tamper tampers with small archives in every way that it knows, and
// requires that a verification sees each one: make tamper.
//
//	go run ./proof/tamper                 all of it
//	go run ./proof/tamper -sample 5000    as many flipped bits of each archive, and all attacks
//	go run ./proof/tamper -verify BINARY  also run that ledgerlake-verify on archives as files
//
// It builds archives that verification passes with exit 0, all rows anchored and
// signed. Then it flips a bit in every byte of every object, one at a time; and
// it makes the attacks that a hand in the bucket can make, and one that has the
// signing keys as well. Each must end in the exit code that the attack names,
// which is 1, but for objects that have no place (4, they are named), and where all
// that is left is less than was asked for (3: signatures were taken away).
//
// Before it trusts a count it tampers with nothing, and requires that this is
// counted as missed.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

func main() {
	sample := flag.Int("sample", 0, "bytes of each archive in which a bit is flipped; 0 is every byte")
	seed := flag.Uint64("seed", 1, "where a sample begins, and which bits are flipped")
	binary := flag.String("verify", "", "a ledgerlake-verify that must tell a good archive from a bad one")
	flag.Parse()
	began := time.Now()
	if *binary != "" {
		if err := canary(*binary); err != nil {
			fmt.Fprintf(os.Stderr, "tamper: %v\n", err)
			os.Exit(1)
		}
		fmt.Printf("%s tells good archives from bad ones\n", *binary)
	}
	missed, err := run(os.Stdout, *sample, *seed)
	if err != nil {
		fmt.Fprintf(os.Stderr, "tamper: %v\n", err)
		os.Exit(2)
	}
	fmt.Printf("%s on %d CPUs\n", time.Since(began).Round(time.Second), runtime.GOMAXPROCS(0))
	if missed > 0 {
		os.Exit(1)
	}
}

// run tampers with every specimen and prints what was detected. It returns how
// many tamperings were missed.
func run(w io.Writer, sample int, seed uint64) (missed int, err error) {
	var t tally
	for _, sp := range specimens() {
		g, err := newGood(sp)
		if err != nil {
			return 0, fmt.Errorf("specimen %q: %w", sp.name, err)
		}
		if err := g.canFail(); err != nil {
			return 0, fmt.Errorf("specimen %q: %w", sp.name, err)
		}
		fmt.Fprintf(w, "%s: %d objects of %d bytes: ", sp.name, len(g.objects), g.objects.bytes())
		tried, missed := t.tried, t.missed
		g.flip(&t, sample, seed)
		g.attack(&t, attacks())
		fmt.Fprintf(w, "%d tried, %d missed\n", t.tried-tried, t.missed-missed)
	}
	t.print(w)
	return t.missed, nil
}
