package archivetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// PutDataFile writes the next data file of a log, of one day and one epoch, and
// returns what a part says of it. tree is that of the log in front of the rows, and
// is moved past them; id makes the key another one.
func PutDataFile(ctx context.Context, b archive.Bucket, log chain.Log, scheme string, tree *chain.Tree, rows []chain.Row, id string) (archive.CatalogFile, error) {
	n, last, headIn := int64(len(rows)), &rows[len(rows)-1], rows[0].PrevHash
	if reset, err := archive.ParseReset(rows[0].Slots[audit.SlotContext]); rows[0].Kind.S == audit.KindChainReset && err == nil {
		headIn = reset.PreviousHead
	}
	l := archive.Line{Topic: log.Topic, TopicID: log.TopicID, Partition: log.Partition}
	meta := archive.DataFile{
		Format: archive.Format, ArchiveID: log.ArchiveID, Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition, Tenant: log.Tenant, Scheme: scheme,
		Epoch: int32(rows[0].Epoch.N), FirstSeq: tree.Size, Rows: n, HeadIn: headIn, HeadOut: last.RowHash, FrontierIn: slices.Clone(tree.Frontier),
	}
	f := archive.CatalogFile{
		Tenant: log.Tenant, Day: time.UnixMicro(last.ArchivedAt.N).UTC().Format(archive.DayLayout),
		FirstSeq: tree.Size, LastSeq: tree.Size + n - 1, Rows: n, HeadIn: meta.HeadIn, HeadOut: meta.HeadOut,
	}
	for i := range rows {
		tree.Append(rows[i].RowHash)
		bound(&f, &rows[i])
	}
	meta.FrontierOut = slices.Clone(tree.Frontier)
	text, err := archive.EncodeDataFile(&meta)
	if err != nil {
		return f, err
	}
	body, err := parquet.NewEncoder().Encode(rows, text)
	if err != nil {
		return f, err
	}
	f.Key = archive.DataKey(l, log.Tenant, f.Day, f.FirstSeq, f.LastSeq, id)
	f.Bytes, f.SHA256 = int64(len(body)), sha256.Sum256(body)
	_, err = b.Create(ctx, f.Key, body)
	return f, err
}

// bound takes a row into the bounds of its file.
func bound(f *archive.CatalogFile, row *chain.Row) {
	if o := row.KafkaOffset; o.Valid {
		f.FirstOffset, f.LastOffset = cmp.Or(f.FirstOffset, &o.N), &o.N
	}
	if !row.CreatedAt.Valid {
		return
	}
	at := archive.Time{Time: time.UnixMicro(row.CreatedAt.N).UTC()}
	if f.MinCreatedAt == nil || at.Before(f.MinCreatedAt.Time) {
		f.MinCreatedAt = &at
	}
	if f.MaxCreatedAt == nil || at.After(f.MaxCreatedAt.Time) {
		f.MaxCreatedAt = &at
	}
}

// PutCatalog writes a catalog version of files, with a part for each day, and
// returns the hash of its text.
func PutCatalog(ctx context.Context, b archive.Bucket, doc *archive.Catalog, files []archive.CatalogFile, signers ...note.Signer) (chain.Hash, error) {
	files = slices.SortedStableFunc(slices.Values(files), func(x, y archive.CatalogFile) int { return cmp.Compare(x.Day, y.Day) })
	for len(files) > 0 {
		n := 1
		for n < len(files) && files[n].Day == files[0].Day {
			n++
		}
		body, err := archive.EncodeCatalogPart(&archive.CatalogPart{Files: files[:n]})
		if err != nil {
			return chain.Hash{}, err
		}
		sum := chain.Hash(sha256.Sum256(body))
		ref := archive.CatalogPartRef{Day: files[0].Day, Key: archive.CatalogPartKey(doc.Line(), sum), Bytes: int64(len(body)), SHA256: sum, Files: int64(n)}
		if _, err := b.Create(ctx, ref.Key, body); err != nil && !errors.Is(err, archive.ErrExists) {
			return chain.Hash{}, err
		}
		doc.Parts, files = append(doc.Parts, ref), files[n:]
	}
	text, err := archive.EncodeCatalog(doc)
	if err != nil {
		return chain.Hash{}, err
	}
	body, err := sign.Sign(text, signers...)
	if err != nil {
		return chain.Hash{}, err
	}
	_, err = b.Create(ctx, archive.CatalogKey(doc.Line(), doc.Version), body)
	return archive.TextHash(text), err
}
