// Package audit says what a record is: its kinds, its form on the wire, the
// columns and slots that it becomes, and the coordinates by which a repeat of
// it is known.
package audit
