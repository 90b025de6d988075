package prooftest

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
	"github.com/ledgerlake/ledgerlake/redact"
)

// A Compaction says how segments become data files.
type Compaction struct {
	Watermark int64
	FileRows  int                    // the most rows of a file; 0 is no limit
	Drop      map[string]*Cut        // by tenant: the rows below its size go
	Change    func(row *chain.Row)   // what becomes of a row; nil leaves it
	Doom      bool                   // segments stay, and are doomed
	Catalog   func(*archive.Catalog) // the last word on the catalog
	ULID      string                 // of files; "" is [ID]
}

// A Cut is a retention-cut, as its control row and the catalog say it.
type Cut struct {
	ID       string
	Size     int64
	Head     chain.Hash
	Frontier []chain.Hash
}

// CutAt returns the cut of a tenant's log at a size.
func (l *Line) CutAt(tenant, id string, size int64) *Cut {
	c := &Cut{ID: id, Size: size}
	var tree chain.Tree
	for _, row := range l.rowsOf(tenant, int64(len(l.Segments)))[:size] {
		tree.Append(row.RowHash)
		c.Head = row.RowHash
	}
	c.Frontier = tree.Frontier
	return c
}

// rowsOf returns the rows of a log below an ordinal.
func (l *Line) rowsOf(tenant string, watermark int64) (rows []chain.Row) {
	for _, s := range l.Segments[:watermark] {
		if l.void[s.Meta.Ordinal] {
			continue
		}
		for i := range s.Rows {
			if s.Rows[i].TenantID.S == tenant {
				rows = append(rows, s.Rows[i])
			}
		}
	}
	return rows
}

// Compact puts data files in the place of segments, with the next version of the
// catalog. What older versions list stays.
func (l *Line) Compact(c Compaction) {
	cat := &archive.Catalog{
		ArchiveID: l.a.ID, Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition,
		Time: archive.Time{Time: time.UnixMicro(l.a.now).UTC()}, Watermark: c.Watermark,
	}
	parts := map[string]*archive.CatalogPart{}
	for _, tenant := range l.tenantsBelow(c.Watermark) {
		if cut := c.Drop[tenant]; cut != nil {
			cat.Cuts = append(cat.Cuts, archive.CatalogCut{Tenant: tenant, ID: cut.ID, Size: cut.Size, Head: cut.Head, Frontier: cut.Frontier})
		}
		for _, f := range l.dataFiles(tenant, c) {
			if parts[f.Day] == nil {
				parts[f.Day] = &archive.CatalogPart{}
			}
			parts[f.Day].Files = append(parts[f.Day].Files, f)
		}
	}
	for day, p := range parts {
		body, err := archive.EncodeCatalogPart(p)
		must(err)
		sum := chain.Hash(sha256.Sum256(body))
		key := archive.CatalogPartKey(l.Line, sum)
		l.a.Others[key] = body
		cat.Parts = append(cat.Parts, archive.CatalogPartRef{Day: day, Key: key, Bytes: int64(len(body)), SHA256: sum, Files: int64(len(p.Files))})
	}
	for i := range c.Watermark {
		if c.Doom {
			cat.Doomed = append(cat.Doomed, archive.CatalogDoomed{Key: l.Key(int(i))})
		} else {
			l.a.Gone[l.Key(int(i))] = true
		}
	}
	for old := l.a.Others[archive.CatalogKey(l.Line, cat.Version)]; old != nil; old = l.a.Others[archive.CatalogKey(l.Line, cat.Version)] {
		n, err := sign.Parse(old)
		must(err)
		sum := archive.TextHash(n.Text)
		cat.Version, cat.Previous = cat.Version+1, &sum
	}
	if c.Catalog != nil {
		c.Catalog(cat)
	}
	text, err := archive.EncodeCatalog(cat)
	must(err)
	l.a.Others[archive.CatalogKey(l.Line, cat.Version)] = Signed(text, l.a.Signers...)
}

func (l *Line) tenantsBelow(watermark int64) (all []string) {
	for _, s := range l.Segments[:watermark] {
		for _, log := range s.Meta.Logs {
			if !slices.Contains(all, log.Tenant) {
				all = append(all, log.Tenant)
			}
		}
	}
	return all
}

// dataFiles makes the data files of a log: each of one day and of one epoch.
func (l *Line) dataFiles(tenant string, c Compaction) (files []archive.CatalogFile) {
	rows := l.rowsOf(tenant, c.Watermark)
	var tree chain.Tree
	scheme := l.Logs[tenant].Scheme
	head := chain.Genesis(scheme, l.chainLog(tenant))
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && day(&rows[n]) == day(&rows[0]) && rows[n].Epoch == rows[0].Epoch && (c.FileRows == 0 || n < c.FileRows) {
			n++
		}
		if cut := c.Drop[tenant]; cut != nil && tree.Size < cut.Size {
			n = min(n, int(cut.Size-tree.Size))
			for i := range rows[:n] {
				tree.Append(rows[i].RowHash)
				head = rows[i].RowHash
			}
			rows = rows[n:]
			continue
		}
		files = append(files, l.dataFile(tenant, scheme, rows[:n], &tree, &head, &c))
		rows = rows[n:]
	}
	return files
}

func day(row *chain.Row) string {
	return time.UnixMicro(row.ArchivedAt.N).UTC().Format(archive.DayLayout)
}

func (l *Line) dataFile(tenant, scheme string, from []chain.Row, tree *chain.Tree, head *chain.Hash, c *Compaction) archive.CatalogFile {
	rows := slices.Clone(from)
	m := archive.DataFile{
		Format: archive.Format, ArchiveID: l.a.ID, Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition, Tenant: tenant, Scheme: scheme,
		Epoch: int32(rows[0].Epoch.N), FirstSeq: tree.Size, Rows: int64(len(rows)), HeadIn: *head, FrontierIn: slices.Clone(tree.Frontier),
	}
	f := archive.CatalogFile{
		Tenant: tenant, Day: day(&rows[0]), FirstSeq: tree.Size, LastSeq: tree.Size + m.Rows - 1, Rows: m.Rows, HeadIn: *head,
	}
	for i := range rows {
		row := &rows[i]
		tree.Append(row.RowHash)
		*head = row.RowHash
		if c.Change != nil {
			c.Change(row)
		}
		tell(&f, row)
	}
	m.HeadOut, m.FrontierOut, f.HeadOut = *head, slices.Clone(tree.Frontier), *head
	meta, err := archive.EncodeDataFile(&m)
	must(err)
	body, err := parquet.NewEncoder().Encode(rows, meta)
	must(err)
	f.Key = archive.DataKey(l.Line, tenant, f.Day, f.FirstSeq, f.LastSeq, cmp.Or(c.ULID, ID))
	f.Bytes, f.SHA256 = int64(len(body)), sha256.Sum256(body)
	l.a.Others[f.Key] = body
	return f
}

// tell takes a row into what a part says of its file.
func tell(f *archive.CatalogFile, row *chain.Row) {
	if n := row.KafkaOffset; n.Valid {
		if f.FirstOffset == nil {
			f.FirstOffset = &n.N
		}
		f.LastOffset = &n.N
	}
	if at := (archive.Time{Time: time.UnixMicro(row.CreatedAt.N).UTC()}); row.CreatedAt.Valid {
		if f.MinCreatedAt == nil || at.Before(f.MinCreatedAt.Time) {
			f.MinCreatedAt = &at
		}
		if f.MaxCreatedAt == nil || at.After(f.MaxCreatedAt.Time) {
			f.MaxCreatedAt = &at
		}
	}
}

// Order adds a row of the control topic: members are those of its value beside
// recordId, tenantId and createdAt.
func (b *Batch) Order(tenant, kind, id string, members map[string]any) {
	b.OrderSigned(tenant, kind, id, id, members, nil)
}

// OrderSigned adds one that a control key signs, for the record of an id; nil
// signs nothing.
func (b *Batch) OrderSigned(tenant, kind, id, signedID string, members map[string]any, by *sign.Signer) {
	b.Row(tenant, func(r *audit.Record) {
		r.Kind, r.RecordID, r.CreatedAt = audit.Str(kind), audit.Str(id), r.KafkaTimestamp
		doc := map[string]any{"recordId": id, "tenantId": tenant, "createdAt": "2026-05-28T20:26:40.000Z"}
		for k, v := range members {
			doc[k] = v
		}
		text, err := json.Marshal(doc)
		must(err)
		r.Slots[audit.SlotContext] = text
		if by != nil {
			note := Signed(chain.ControlText(b.l.a.ID, tenant, kind, signedID, text), by)
			r.Slots[audit.SlotExt], err = json.Marshal(map[string]any{"$headers": []any{[]any{"other", nil}, []any{"ledgerlake-signature", string(note)}}})
			must(err)
		}
	})
}

// Redaction returns the members of an order that takes slots from what a target
// means.
func Redaction(target map[string]any, slots any) map[string]any {
	return map[string]any{"target": target, "slots": slots, "user": false, "hard": false, "reason": "r", "requestRef": nil, "by": "dpo"}
}

// Receipt returns the members of a receipt of one part that names rows of one
// log.
func (l *Line) Receipt(order string, slots any, ranges ...[2]int64) map[string]any {
	return map[string]any{
		"redactionId": order, "slots": slots, "user": false, "hard": false, "reason": "r", "requestRef": nil, "part": 1, "parts": 1,
		"erased":  []any{map[string]any{"topic": l.Topic, "topicId": l.TopicID, "partition": l.Partition, "ranges": append([][2]int64{}, ranges...)}},
		"deleted": []any{}, "outOfReach": []any{},
	}
}

// CutOrder returns the members of a retention-cut.
func (l *Line) CutOrder(c *Cut) map[string]any {
	return map[string]any{
		"topic": l.Topic, "topicId": l.TopicID, "partition": l.Partition, "size": c.Size, "head": c.Head, "frontier": c.Frontier, "policy": "rows 1 d",
	}
}

// Erase takes slots, or all content where none is named, from a row by an order.
func Erase(row *chain.Row, order string, slots ...audit.Slot) {
	s := chain.Sentinel{ID: order, All: len(slots) == 0, Slots: chain.SlotSetOf(slots...)}
	_, err := redact.Erase(chain.NewHasher(nil), row, s)
	must(err)
}

// OrderID returns the id of a control row: the n-th.
func OrderID(n int) string { return fmt.Sprintf("01KBCDEFGHJKMNPQRSTW%06d", n) }

// Later lets time pass before the next row.
func (a *Archive) Later(d time.Duration) { a.now += d.Microseconds() }
