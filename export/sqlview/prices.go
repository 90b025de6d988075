package sqlview

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Price is what a model costs from a day on. Numbers are decimal texts, per
// million tokens, in Currency. CacheRead and CacheWrite may be "": where a provider
// counts cached tokens among those of the input, they cost nothing besides.
type Price struct {
	Provider, Model       string // as columns family and model_id have them
	From                  string // YYYY-MM-DD, UTC
	Input, Output         string
	CacheRead, CacheWrite string
	Currency              string
}

// PriceHeader is the first line of a file of prices.
var PriceHeader = []string{
	"provider", "model", "from", "input_per_million", "output_per_million", "cache_read_per_million", "cache_write_per_million", "currency",
}

// maxPrice bounds a price: a larger one is a slip of the pen.
const maxPrice = 1_000_000

// ReadPrices reads a file of prices: CSV (RFC 4180), in UTF-8, with [PriceHeader].
// Two prices of one model from one day are a fault, as is all that is no price.
func ReadPrices(r io.Reader) (all []Price, err error) {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("header: %w: want %s", err, strings.Join(PriceHeader, ","))
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	if !slices.Equal(header, PriceHeader) {
		return nil, fmt.Errorf("line 1: want %s", strings.Join(PriceHeader, ","))
	}
	seen := map[[3]string]bool{}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := in.FieldPos(0)
		p := Price{fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6], fields[7]}
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		key := [3]string{p.Provider, p.Model, p.From}
		if seen[key] {
			return nil, fmt.Errorf("line %d: there is a price of %s %s from %s already", line, p.Provider, p.Model, p.From)
		}
		seen[key] = true
		all = append(all, p)
	}
}

func (p *Price) check() error {
	if p.Provider == "" || p.Model == "" || p.Currency == "" {
		return errors.New("want a provider, a model and a currency")
	}
	if t, err := time.Parse(time.DateOnly, p.From); err != nil || t.Format(time.DateOnly) != p.From {
		return fmt.Errorf("from is %q: want a day, such as 2026-05-01", p.From)
	}
	for i, v := range []string{p.Input, p.Output, p.CacheRead, p.CacheWrite} {
		if v == "" && i >= 2 {
			continue
		}
		if !isPrice(v) {
			return fmt.Errorf("%s is %q: want a number, such as 3.75", PriceHeader[3+i], v)
		}
	}
	return nil
}

// isPrice reports whether a text is a plain decimal number, which every engine
// reads as the same.
func isPrice(s string) bool {
	if strings.Trim(s, "0123456789.") != "" || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") || len(s) > 20 {
		return false
	}
	v, err := strconv.ParseFloat(s, 64)
	return err == nil && v <= maxPrice
}
