package config

import "math"

// Reset is what an operator orders with reset-chain.
type Reset struct {
	Topic     string
	Partition int
	Reason    string
	Yes       bool // do it, and do not only show it
}

// Section returns the settings of the order alone.
func (r *Reset) Section() Section {
	return Section{"What is ordered", []Setting{
		{Name: "topic", Required: true, Help: "The topic of the partition.", Value: text(&r.Topic, "TOPIC", "the name of a Kafka topic", isTopic)},
		{Name: "partition", Required: true, Help: "Its number.", Value: count(&r.Partition, 0, math.MaxInt32)},
		{
			Name: "reason", Required: true, Help: "Why, in a few words. It stands in each log for ever, cannot be erased, and must name no person.",
			Value: text(&r.Reason, "TEXT", "a reason", notEmpty),
		},
		{Name: "yes", Default: "false", Help: "Do it. Without this, what would be done is printed, and nothing is.", Value: boolean(&r.Yes)},
	}}
}
