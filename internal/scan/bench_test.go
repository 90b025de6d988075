package scan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ledgerlake/ledgerlake/parquet"
)

// BenchmarkFind prints how fast a data file is looked through, of which pages
// become several times its size, for thousands of values.
func BenchmarkFind(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	rows := stamped(r, 5000)
	object := dataFile(b, parquet.NewDataWriter(parquet.DataOptions{}), rows)
	var values []string
	for i := range 5000 {
		values = append(values, fmt.Sprintf("nobody has this %d", i))
	}
	n := must(NewNeedles(values))
	b.SetBytes(int64(len(object)))
	for b.Loop() {
		if hits, err := n.Find(object); err != nil || hits != nil {
			b.Fatal(hits, err)
		}
	}
}
