package main

// A variant is a plausible mistake: the engine with some lines changed. The
// simulation must catch each, or it shows less than it says.
type variant struct {
	name    string
	patches []patch
}

// variants are the mistakes. None is a switch in the engine: they are patches
// on its sources, and one whose old text is no longer there fails.
var variants = []variant{
	{"adopts without comparing with Kafka", []patch{{
		"pipeline/partition.go", "\tif other != nil {\n\t\terr = p.source.compare(p.put, st, w, p.trusted, other)\n\t}\n", "\t_ = w\n",
	}}},
	{"commits the offset before the PUT", []patch{{
		"pipeline/partition.go", "\tst, w := p.state, p.window\n\tgo func()",
		"\tp.durable.Store(&position{offset: built.segment.NextOffset, epoch: built.segment.LeaderEpoch})\n\tst, w := p.state, p.window\n\tgo func()",
	}}},
	{"retries a 412 under the next ordinal", []patch{{
		"archive/commit.go", "\treturn adopt(st, there)\n}\n\nfunc (c *Committer) believe",
		"\tnext := st.Clone()\n\tnext.Ordinal++\n\treturn c.try(ctx, next, SegmentKey(next.Line, next.Ordinal), body)\n}\n\nfunc (c *Committer) believe",
	}}},
	{"believes the group offset", []patch{{
		"pipeline/assign.go", "\t\t\tout[at] = from\n",
		"\t\t\tif told := offsets[at.topic][at.number]; told.EpochOffset().Offset >= 0 {\n\t\t\t\tfrom = told\n\t\t\t}\n\t\t\tout[at] = from\n",
	}}},
	{"resets to latest", []patch{{
		"pipeline/consumer.go", "kgo.ConsumeResetOffset(kgo.NoResetOffset())", "kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd())",
	}}},
	{"starts a PUT while one is in flight", []patch{
		{"pipeline/partition.go", "if p.flying != nil || p.open.empty() || stopping", "if p.open.empty() || stopping"},
		{"pipeline/partition.go", "\tp.open, p.spare = p.spare, nil\n", "\tp.open, p.spare = newBatch(), nil\n"},
		{"pipeline/partition.go", "\tf := p.flying\n\tp.flying = nil\n", "\tf := p.flying\n\tp.flying = nil\n\tif f == nil {\n\t\treturn nil\n\t}\n"},
		{"pipeline/partition.go", "landed: make(chan landing, 1), put: put", "landed: make(chan landing, 1000), put: put"}, // nobody hangs
	}},
	{"skips trailing transaction markers", []patch{{
		"pipeline/partition.go", "\tif r.Offset > p.next {\n\t\tp.open.addGap(p.next, r.Offset, archive.GapCompacted, now)\n",
		"\tif r.Attrs.IsControl() {\n\t\tp.give(cost(r))\n\t\treturn\n\t}\n\tif r.Offset > p.next {\n\t\tp.open.addGap(p.next, r.Offset, archive.GapCompacted, now)\n",
	}}},
	{"counts a forged gap as good", []patch{{
		"pipeline/compare.go", "\tif s.gap != \"\" {\n\t\treturn c.forged(r.Offset, \"it lies in a gap (%s), and Kafka has a record there\", s.gap)\n\t}\n", "\tif s.gap != \"\" {\n\t\treturn nil\n\t}\n",
	}}},
	{"trusts the stored writer version and compares nothing", []patch{{
		"pipeline/compare.go", "\t\tdiffers = differsInSubstance\n", "\t\tdiffers = func(_, _ *audit.Record) string { return \"\" }\n",
	}}},
	{"passes a batch on 403", []patch{{
		"archive/commit.go", "\t\tif err == nil || errors.Is(err, ErrBreaks) || errors.Is(err, ErrCatalog) {\n", "\t\tif errors.Is(err, ErrDenied) {\n\t\t\treturn nil, nil\n\t\t}\n\t\tif err == nil || errors.Is(err, ErrBreaks) || errors.Is(err, ErrCatalog) {\n",
	}}},
	{"adopts the state but keeps the rows that it covers", []patch{
		{"pipeline/partition.go", "\tp.give(f.batch.dropBefore(at) + p.open.dropBefore(at))\n", ""},
		{"pipeline/partition.go", "\tif at >= 0 && f.batch.items[0].from != at {\n", "\tif at < 0 {\n"},
	}},
	{"rebuilds no dedupe window after a restart", []patch{
		{"pipeline/start.go", "\tinto.window, err = c.readWindow(ctx, l, nil, r.Recent, limit)\n", "\tinto.window = newWindow()\n"},
		{"pipeline/trail.go", "\tw, err := c.readWindow(ctx, t.line, catalog, recent, limit)\n", "\tw, _ := newWindow(), recent\n"},
	}},
	{"signs without reading the tail again", []patch{{
		"pipeline/anchor.go", "\tif len(j.doc.Segments) > 0 {\n\t\tif err := p.checkTail(j.doc.Ordinal, j.tail); err != nil {\n\t\t\treturn anchorLanding{err: err}\n\t\t}\n\t}\n", "",
	}}},
	{"does not hold the bucket against the anchors that Kafka has", []patch{{
		"pipeline/trail.go", "\tfor _, k := range known {\n", "\tfor _, k := range known[:0] {\n",
	}}},
	{"builds on anchors that strangers signed", []patch{{
		"pipeline/trail.go", "\t\tcase v == sign.Good:\n", "\t\tcase v == sign.Good, v == sign.Unknown:\n",
	}}},
	{"copies an anchor to Kafka before the bucket has it", []patch{{
		"pipeline/anchor.go", "\tother, err := p.createAnchor(j.doc.Number, body)\n",
		"\tif p.shared.copy != nil {\n\t\tp.shared.copy(p.line, j.doc.Number, body)\n\t\t_ = p.shared.backOff(p.put, 3)\n\t}\n\tother, err := p.createAnchor(j.doc.Number, body)\n",
	}}},

	{"believes a write without a look at the catalog", []patch{{
		"archive/commit.go", "\treturn c.Believe(ctx, storeTime)\n", "\treturn nil\n",
	}}},
	{"sweeps what its own version does not know", []patch{{
		"compaction/sweep.go", "\tp.doom, p.strayed = append(p.doom, strays...), strays\n",
		"\tvar all []archive.Version\n\tfor _, key := range strays {\n\t\tall = append(all, p.versions[key]...)\n\t}\n\tp.e.Archive.Delete(p.ctx, all)\n",
	}}},
	{"compacts above the newest anchor", []patch{{
		"compaction/look.go", "\treturn newest, nil\n}\n\nfunc (e *Engine) warn",
		`	above, err := archive.ListSegments(ctx, e.Archive, s.Line, s.anchored()+1)
	if err != nil || s.Newest == nil {
		return newest, nil
	}
	more := *s.Newest
	more.Segments = nil
	for _, o := range above {
		body, err := e.Archive.Get(ctx, o.Key)
		if err != nil {
			return 0, err
		}
		seg, err := archive.ReadSegment(body, nil)
		if err != nil {
			return 0, err
		}
		more.Ordinal = seg.Ordinal
		more.Segments = append(more.Segments, archive.AnchorSegment{Ordinal: seg.Ordinal, Bytes: seg.Bytes, SHA256: seg.SHA256, AnchorCounts: archive.CountsOf(seg.Segment)})
	}
	s.Anchors, s.Newest = append(s.Anchors, &more), &more
	return newest, nil
}

func (e *Engine) warn`,
	}}},
	{"deletes by its own clock", []patch{{
		"compaction/plan.go", "p.s.StoreNow.Sub(at) > p.grace", "p.now.Sub(at) > p.grace",
	}}},
	{"deletes before the grace", []patch{{
		"compaction/plan.go", "grace: time.Duration(o.Root.GraceSeconds) * time.Second, busy", "grace: time.Duration(o.Root.GraceSeconds) * time.Second / 4, busy",
	}}},
	{"takes the key of a data file twice", []patch{{
		"compaction/write.go", "\tf.Key = archive.DataKey(p.l, f.Tenant, f.Day, f.FirstSeq, f.LastSeq, id)\n",
		"\tid = \"01KRNR3ZG00000000000000000\"\n\tf.Key = archive.DataKey(p.l, f.Tenant, f.Day, f.FirstSeq, f.LastSeq, id)\n",
	}}},
	{"forgets what it has replaced", []patch{{
		"compaction/pass.go", "\t\tp.doom = append(p.doom, f.Key)\n", "\t\t_ = f.Key\n",
	}}},
	{"takes the answer to a delete for the deed", []patch{{
		"compaction/delete.go", "\t\tif len(p.versions[key]) == 0 {\n\t\t\tp.gone[key], p.m.gone[key] = true, true\n", "\t\tif true {\n\t\t\tp.gone[key], p.m.gone[key] = true, true\n",
	}}},
	{"sends a receipt of what is there", []patch{{
		"compaction/receipts.go", "e.State != archive.RedactionGone && e.State != archive.RedactionReceipted", "e.State == archive.RedactionGated",
	}}},
	{"erases what a legal hold keeps", []patch{{
		"compaction/erase.go", "\tif len(all) > 0 && (held(t.holds, row) || t.inForce(row)) {\n", "\tif len(all) > 0 && t.inForce(row) {\n",
	}}},
	{"carries an order out before an anchor covers it", []patch{{
		"compaction/duties.go", "func counts(r *control.Row) bool { return r.Anchored }", "func counts(r *control.Row) bool { return r != nil }",
	}}},
}
