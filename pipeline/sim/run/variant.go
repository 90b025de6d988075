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
		"archive/commit.go", "\t\tif err == nil || errors.Is(err, ErrBreaks) {\n", "\t\tif errors.Is(err, ErrDenied) {\n\t\t\treturn nil, nil\n\t\t}\n\t\tif err == nil || errors.Is(err, ErrBreaks) {\n",
	}}},
	{"adopts the state but keeps the rows that it covers", []patch{
		{"pipeline/partition.go", "\tp.give(f.batch.dropBefore(at) + p.open.dropBefore(at))\n", ""},
		{"pipeline/partition.go", "\tif at >= 0 && f.batch.items[0].from != at {\n", "\tif at < 0 {\n"},
	}},
	{"rebuilds no dedupe window after a restart", []patch{
		{"pipeline/start.go", "\tinto.window, err = c.readWindow(ctx, l, r.Recent, limit)\n", "\tinto.window = newWindow()\n"},
		{"pipeline/trail.go", "\tw, err := c.readWindow(ctx, t.line, recent, limit)\n", "\tw, _ := newWindow(), recent\n"},
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
}
