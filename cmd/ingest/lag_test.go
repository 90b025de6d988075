package main

import (
	"fmt"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// Whatever number of partitions there is, no offset of lag is left out, and
// there are never more than a thousand series.
func TestLagSeries(t *testing.T) {
	for _, tt := range []struct {
		topics, partitions int
		byPartition        bool
		want               int
	}{
		{0, 0, true, 0},
		{10, 100, true, 1000},
		{10, 100, false, 10},
		{10, 101, true, 10},
		{1000, 2, true, 1000},
		{1001, 1, true, 1},
	} {
		var all []pipeline.PartitionStatus
		for topic := range tt.topics {
			for n := range tt.partitions {
				l := archive.Line{Topic: fmt.Sprint(topic), Partition: int32(n)}
				all = append(all, pipeline.PartitionStatus{Line: l, NextOffset: 5, End: 7})
			}
		}
		series := lagSeries(all, tt.byPartition)
		var sum int64
		for _, n := range series {
			sum += n
		}
		if len(series) != tt.want || sum != int64(2*len(all)) {
			t.Errorf("%d topics of %d: %d series with a sum of %d, want %d with %d", tt.topics, tt.partitions, len(series), sum, tt.want, 2*len(all))
		}
	}
}
