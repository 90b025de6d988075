package faults3

import (
	"fmt"
	"net/http"
	"time"
)

// A lock keeps a version until a time. The zero lock keeps nothing.
type lock struct {
	mode  string // GOVERNANCE or COMPLIANCE
	until time.Time
}

// lockedMessage is what AWS says of a version that a lock keeps. The code is
// that of missing rights.
const lockedMessage = "Access Denied because object protected by object lock."

// lockOf reads the lock that a PUT asks for.
func lockOf(h http.Header) lock {
	until, err := time.Parse(time.RFC3339, h.Get("X-Amz-Object-Lock-Retain-Until-Date"))
	if err != nil {
		return lock{}
	}
	return lock{h.Get("X-Amz-Object-Lock-Mode"), until}
}

func (l lock) tell(h http.Header) {
	if l.mode != "" {
		h.Set("X-Amz-Object-Lock-Mode", l.mode)
		h.Set("X-Amz-Object-Lock-Retain-Until-Date", l.until.Format(time.RFC3339))
	}
}

func (l lock) keeps(now time.Time, bypass bool) bool {
	return l.mode != "" && now.Before(l.until) && !(bypass && l.mode == "GOVERNANCE")
}

func refuseLocked(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprintf(w, "<Error><Code>AccessDenied</Code><Message>%s</Message></Error>", lockedMessage)
}
