// Package retention decides what of a log goes by policy, and does nothing
// itself: it reads a file of policies ([Parse]), and says of one log, from the
// store's time and the days of its rows, how far it may be cut and what expires
// ([Decide]), and of one order whether it may be done ([Policy.Refuse]).
//
//	what is asked                        stopped by, strongest first
//	rows go (a cut, offboarding)         legal hold > statutory floor > tenant's maximum > default
//	payload goes (expiry)                legal hold, row by row > sec17a4 > tenant's maximum > default
//	an order of erasure                  legal hold, row by row > sec17a4, and a floor where it is hard
//	rows due behind a hold               stay, and are erased instead
//
// Nothing goes unless a policy names a period for it: no file, no entry and no
// member mean that all is kept for ever, also the bytes of rejected records. A
// tenant's entry says nothing about any other tenant.
//
// Periods are counted in whole days, in UTC, from archived_at, as the day
// folders of data files are: a day is due when its end is older than the period.
// The package is pure: no clock, no files, no randomness.
//
// # What it does not do
//
// It does not look for held rows, order erasures, or delete: package compaction
// does, after the order is a chained row.
package retention
