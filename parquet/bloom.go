package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go/bloom"
	"github.com/parquet-go/parquet-go/bloom/xxhash"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Bloom filters are Parquet's split block ones, by XXH64 of the value's bytes:
// https://parquet.apache.org/docs/file-format/bloomfilter/

// maxBloom is the size of the largest filter in bytes: 17 bits for each value of a
// row group of maxGroupRows different ones.
const maxBloom = 256 << 10

// A filter is a column of data files that gets a bloom filter.
type filter struct {
	column string
	// bits are how many it has for each value at least. With 10 it lets one in a
	// hundred of the values through that are not there, with 20 one in some
	// thousand.
	bits int
}

// filters are what people look for, and the kind, by which a file without rejected
// records is known. They stand in the object in this order: whoever reads its end
// for the footer has the last ones as well. A row group has many more rows than
// turns and sessions, so that theirs may be dense.
var filters = []filter{{"record_id", 10}, {"kind", 10}, {"user_id", 10}, {"session_id", 20}, {"turn_id", 20}}

// bloomOf returns what makes the filter of a column, or nil.
func bloomOf(column string) *bloomMaker {
	for _, f := range filters {
		if f.column == column {
			return &bloomMaker{bits: f.bits}
		}
	}
	return nil
}

// A bloomMaker makes the filter of one chunk.
type bloomMaker struct {
	bits   int
	hashes []uint64
}

func (m *bloomMaker) add(value []byte) {
	if x := xxhash.Sum64(value); len(m.hashes) == 0 || m.hashes[len(m.hashes)-1] != x {
		m.hashes = append(m.hashes, x)
	}
}

// append appends header and filter, or nothing where there is no value. The size
// is a power of two: Arrow refuses any other.
func (m *bloomMaker) append(b []byte) ([]byte, error) {
	slices.Sort(m.hashes)
	m.hashes = slices.Compact(m.hashes)
	if len(m.hashes) == 0 {
		return b, nil
	}
	size := bloom.BlockSize
	for size < maxBloom && size*8 < len(m.hashes)*m.bits {
		size *= 2
	}
	filter := make(bloom.SplitBlockFilter, size/bloom.BlockSize)
	filter.InsertBulk(m.hashes)
	header, err := thrift.Marshal(new(thrift.CompactProtocol), &format.BloomFilterHeader{
		NumBytes:    int32(size),
		Algorithm:   format.BloomFilterAlgorithm{Value: &format.SplitBlockAlgorithm{}},
		Hash:        format.BloomFilterHash{Value: &format.XxHash{}},
		Compression: format.BloomFilterCompression{Value: &format.BloomFilterUncompressed{}},
	})
	if err != nil {
		return nil, err
	}
	return append(append(b, header...), filter.Bytes()...), nil
}

// BloomHas reports whether a column may have a value, by a bloom filter as it
// stands in an object, header included: see [Footer.Blooms]. false is certain.
// The error matches [ErrMalformed].
func BloomHas(filter []byte, value string) (has bool, err error) {
	defer boundary(&err)
	size, err := bloomSize(filter)
	if err != nil {
		return false, err
	}
	header := new(format.BloomFilterHeader)
	if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(bytes.NewReader(filter))).Decode(header); err != nil {
		return false, err
	}
	_, block := header.Algorithm.Value.(*format.SplitBlockAlgorithm)
	_, hash := header.Hash.Value.(*format.XxHash)
	_, plain := header.Compression.Value.(*format.BloomFilterUncompressed)
	bits := filter[size-int64(header.NumBytes) : size]
	switch {
	case !block || !hash || !plain:
		return false, errors.New("bloom filter of another kind")
	case len(bits) == 0 || len(bits)%bloom.BlockSize != 0:
		return false, fmt.Errorf("bloom filter of %d bytes", len(bits))
	}
	return bloom.CheckSplitBlock(bytes.NewReader(bits), int64(len(bits)), xxhash.Sum64([]byte(value)))
}
