package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/export/render"
	"github.com/ledgerlake/ledgerlake/internal/reach"
)

const outputHelp = `  --format FORMAT
        jsonl (default): a record a line, as its producer sent it, with a member $ledgerlake of where it stands; csv;
        parquet; chained: JSON lines that prove themselves, as 'ledgerlake-verify jsonl' reads them; table, for people.
        docs/export-formats.md describes them.
  --output FILE
        Where to write; - is stdout. Default: -. A file is there whole or not at all. Of parquet and chained there may
        be several: rows.parquet, rows.2.parquet.
  --bare
        jsonl, chained: without $ledgerlake, so that a record is exactly what its producer sent.
  --columns NAME,...
        csv, table: these columns, in this order.
  --file-size SIZE
        parquet, chained: how long a file may become. Default: 128MiB, and 50MB.
  --chain-key FILE
        chained: the key of HMAC-SHA256, in the place of plain SHA-256: the bytes of this file, without a line feed at
        its end, as 'ledgerlake-verify jsonl --key-file' reads it.
`

// An output is where rows go, and in which format.
type output struct {
	format   string
	name     string
	bare     bool
	columns  string
	fileSize int64
	chainKey string

	rows render.Writer
	temp []*reach.File // that are to become files
}

func (o *output) define(f *reach.Flags) {
	f.StringVar(&o.format, "format", string(render.JSONL), "")
	f.StringVar(&o.name, "output", "-", "")
	f.BoolVar(&o.bare, "bare", false, "")
	f.StringVar(&o.columns, "columns", "", "")
	f.Func("file-size", "", o.setFileSize)
	f.StringVar(&o.chainKey, "chain-key", "", "")
}

func (o *output) setFileSize(text string) error {
	n, ok := config.ParseBytes(text)
	if !ok || n < 1 {
		return errors.New("want a size, such as 128MiB")
	}
	o.fileSize = n
	return nil
}

// check finds what is wrong with the flags before anything is read.
func (o *output) check(c call) error {
	f, err := render.ParseFormat(o.format)
	switch {
	case err != nil:
		return fmt.Errorf("%w: --format: %w", errUsage, err)
	case f == render.Parquet && o.name == "-" && reach.IsTerminal(c.stdout):
		return fmt.Errorf("%w: a Parquet file is nothing for a terminal: give --output FILE", errUsage)
	case o.name == "" || isFolder(o.name):
		return fmt.Errorf("%w: --output: want the name of a file, or -", errUsage)
	case o.columns != "" && f != render.CSV && f != render.Table:
		return fmt.Errorf("%w: --columns is for csv and table", errUsage)
	case o.bare && f != render.JSONL && f != render.Chained:
		return fmt.Errorf("%w: --bare is for jsonl and chained", errUsage)
	case o.chainKey != "" && f != render.Chained:
		return fmt.Errorf("%w: --chain-key is for chained", errUsage)
	case o.fileSize > 0 && (o.name == "-" || f != render.Chained && f != render.Parquet):
		return fmt.Errorf("%w: --file-size is for files of parquet and chained", errUsage)
	}
	if second := render.FileName(o.name, 2); (f == render.Parquet || f == render.Chained) && o.name != "-" && exists(second) {
		return fmt.Errorf("%w: --output: %s is there, of an earlier export that had more files: take them away", errUsage, second)
	}
	_, err = o.options("")
	return err
}

func (o *output) options(archiveID string) (render.Options, error) {
	r := render.Options{ArchiveID: archiveID, Bare: o.bare, FileBytes: o.fileSize}
	if o.columns != "" {
		r.Columns = strings.Split(o.columns, ",")
	}
	if o.chainKey != "" {
		key, err := reach.RawKeyFile(o.chainKey)
		if err != nil {
			return r, fmt.Errorf("--chain-key: %w", err)
		}
		r.Key = key
	}
	return r, nil
}

// begin makes the writer.
func (o *output) begin(c call, archiveID string) error {
	opts, err := o.options(archiveID)
	if err != nil {
		return err
	}
	info, none := os.Stat(o.name)
	switch {
	case o.name == "-":
		o.rows, err = render.New(render.Format(o.format), c.stdout, opts)
	case none == nil && !info.Mode().IsRegular(): // a pipe, a device: one for all
		var f io.Writer
		if f, err = o.create(1); err == nil {
			o.rows, err = render.New(render.Format(o.format), f, opts)
		}
	default:
		o.rows, err = render.NewSet(render.Format(o.format), o.create, opts)
	}
	if errors.Is(err, render.ErrColumn) {
		return fmt.Errorf("%w: --columns: %w", errUsage, err)
	}
	return err
}

// create begins the n-th file, beside its place.
func (o *output) create(n int) (io.WriteCloser, error) {
	f, err := reach.Create(render.FileName(o.name, n))
	if err != nil {
		return nil, err
	}
	o.temp = append(o.temp, f)
	return f, nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// flush hands on what was written, where the format can.
func (o *output) flush() error {
	if f, ok := o.rows.(interface{ Flush() error }); ok {
		return f.Flush()
	}
	return nil
}

// commit ends the output, and puts files in their places.
func (o *output) commit() error {
	if err := o.rows.Close(); err != nil {
		return err
	}
	for _, f := range o.temp {
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			return err
		}
		if err := f.Put(); err != nil {
			return err
		}
	}
	o.temp = nil
	return nil
}

// abort takes away files that did not become whole. After commit there are none.
func (o *output) abort() {
	for _, f := range o.temp {
		f.Drop()
	}
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
