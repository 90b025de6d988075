package devstack

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

// startKafka starts a broker on its data and creates the topics that are not
// there.
func startKafka(dir string, port int, topics []Topic) (*kfake.Cluster, error) {
	c, err := kfake.NewCluster(
		kfake.ClusterID("ledgerlake-devstack"),
		kfake.Ports(port),
		kfake.DataDir(dir),
		kfake.ListenFn(listen),
	)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	for _, t := range topics {
		if err := ensureTopic(c, t); err != nil {
			c.Close()
			return nil, fmt.Errorf("kafka: %w", err)
		}
	}
	return c, nil
}

// ensureTopic creates a topic that keeps its records for ever: a broker that
// drops old timestamps would lose what a test or a backfill has just sent.
func ensureTopic(c *kfake.Cluster, t Topic) error {
	if there := len(c.PartitionInfos(t.Name)); there == t.Partitions {
		return nil
	} else if there > 0 {
		return fmt.Errorf("%w: %s has %d, not %d", ErrPartitions, t.Name, there, t.Partitions)
	}
	if err := c.CreateTopic(t.Name, int32(t.Partitions), map[string]string{"retention.ms": "-1"}); err != nil {
		return fmt.Errorf("create topic %s: %w", t.Name, err)
	}
	return nil
}

// listen binds an address, and says so where something else has it.
func listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: %s", ErrPortTaken, address)
	}
	return l, err
}
