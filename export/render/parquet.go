package render

import (
	"errors"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// NewParquet returns a writer of Parquet files with the schema of data files, salts
// included: what reads an archive reads them, and all hashes of a row that is whole
// can be recomputed from it. A file ends where it is FileBytes long, about; without
// rows there is one, which has none. One file at a time is in memory.
func NewParquet(create Create, o Options) Writer {
	p := &parquetSet{create: create, limit: o.FileBytes}
	if p.limit == 0 {
		p.limit = ParquetBytes
	}
	p.w = parquet.NewDataWriter(parquet.DataOptions{Target: min(p.limit, ParquetBytes)})
	return p
}

type parquetSet struct {
	create Create
	limit  int64
	w      *parquet.DataWriter
	files  int
}

func (p *parquetSet) Write(r *export.Row) error {
	if err := p.w.Rows([]*chain.Row{&r.Row}); err != nil {
		return rowError(r, err)
	}
	if p.w.Size() >= p.limit {
		return p.end()
	}
	return nil
}

// end writes the file.
func (p *parquetSet) end() error {
	object, err := p.w.Close(nil)
	if err != nil {
		return err
	}
	p.files++
	f, err := p.create(p.files)
	if err != nil {
		return err
	}
	_, err = f.Write(object)
	return errors.Join(err, f.Close())
}

func (p *parquetSet) Close() error {
	if p.w.NumRows() == 0 && p.files > 0 {
		return nil
	}
	return p.end()
}
