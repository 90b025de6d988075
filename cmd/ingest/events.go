package main

import (
	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// merge returns events that two hear, a first. Both must have all funcs.
func merge(a, b pipeline.Events) pipeline.Events {
	return pipeline.Events{
		Assigned: func(l archive.Line, offset, ordinal int64) {
			a.Assigned(l, offset, ordinal)
			b.Assigned(l, offset, ordinal)
		},
		Revoked: func(l archive.Line) {
			a.Revoked(l)
			b.Revoked(l)
		},
		Committed: func(c pipeline.Commit) {
			a.Committed(c)
			b.Committed(c)
		},
		Rejected: func(l archive.Line, offset int64, tenant string, r audit.Reject) {
			a.Rejected(l, offset, tenant, r)
			b.Rejected(l, offset, tenant, r)
		},
		Gap: func(l archive.Line, from, to int64) {
			a.Gap(l, from, to)
			b.Gap(l, from, to)
		},
		Retrying: func(l archive.Line, key string, attempt int, err error) {
			a.Retrying(l, key, attempt, err)
			b.Retrying(l, key, attempt, err)
		},
		Comparing: func(l archive.Line, ordinal int64) {
			a.Comparing(l, ordinal)
			b.Comparing(l, ordinal)
		},
		Anchored: func(n pipeline.Anchor) {
			a.Anchored(n)
			b.Anchored(n)
		},
		CopyFailed: func(l archive.Line, what string, err error) {
			a.CopyFailed(l, what, err)
			b.CopyFailed(l, what, err)
		},
		Stopped: func(l archive.Line, err error) {
			a.Stopped(l, err)
			b.Stopped(l, err)
		},
		Offsets: func(o pipeline.OffsetCommit) {
			a.Offsets(o)
			b.Offsets(o)
		},
		SecondLog: func(tenant string, l archive.Line) {
			a.SecondLog(tenant, l)
			b.SecondLog(tenant, l)
		},
		Warn: func(what string, err error) {
			a.Warn(what, err)
			b.Warn(what, err)
		},
	}
}
