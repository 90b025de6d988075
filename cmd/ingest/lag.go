package main

import (
	"strconv"

	"github.com/ledgerlake/ledgerlake/pipeline"
)

// lagSeriesMax is how many series of lag there are at most.
const lagSeriesMax = 1000

// lagLabels are the labels of a series of lag: a partition, a topic (its sum),
// or nothing (the sum of all).
type lagLabels struct{ topic, partition string }

// lagSeries returns the lag of partitions as as many series as there may be: by
// partition where that is wanted, else by topic, else as one. A partition of
// which it is not known has none.
func lagSeries(partitions []pipeline.PartitionStatus, byPartition bool) map[lagLabels]int64 {
	if byPartition {
		if sums := sumLag(partitions, labelPartition); len(sums) <= lagSeriesMax {
			return sums
		}
	}
	if sums := sumLag(partitions, labelTopic); len(sums) <= lagSeriesMax {
		return sums
	}
	return sumLag(partitions, func(*pipeline.PartitionStatus) lagLabels { return lagLabels{} })
}

func labelPartition(p *pipeline.PartitionStatus) lagLabels {
	return lagLabels{p.Line.Topic, strconv.Itoa(int(p.Line.Partition))}
}

func labelTopic(p *pipeline.PartitionStatus) lagLabels { return lagLabels{topic: p.Line.Topic} }

func sumLag(partitions []pipeline.PartitionStatus, label func(*pipeline.PartitionStatus) lagLabels) map[lagLabels]int64 {
	sums := map[lagLabels]int64{}
	for i := range partitions {
		if p := &partitions[i]; p.End >= 0 && p.NextOffset >= 0 {
			sums[label(p)] += max(0, p.End-p.NextOffset)
		}
	}
	return sums
}
