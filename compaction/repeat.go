package compaction

import "github.com/ledgerlake/ledgerlake/chain"

// repeats marks rows that repeat an older one of their log.
func (p *pass) repeats(tenant string, rows []*chain.Row) error { return nil }
