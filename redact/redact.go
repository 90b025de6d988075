// Package redact takes content out of rows: [Policy.Scrub] before a row is
// stamped, [Erase] after.
//
// The package is pure: no clock, no network, no randomness.
package redact
