package main

import (
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// clientHooks counts what the Kafka client does.
type clientHooks struct{ *metrics }

var (
	_ kgo.HookBrokerConnect    = clientHooks{}
	_ kgo.HookBrokerE2E        = clientHooks{}
	_ kgo.HookGroupManageError = clientHooks{}
)

// OnBrokerConnect implements [kgo.HookBrokerConnect].
func (h clientHooks) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	h.connects.WithLabelValues(outcome).Inc()
}

// OnBrokerE2E implements [kgo.HookBrokerE2E].
func (h clientHooks) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e2e kgo.BrokerE2E) {
	h.kafkaRead.Add(float64(e2e.BytesRead))
	if e2e.Err() != nil {
		h.kafkaErrors.Inc()
	}
}

// OnGroupManageError implements [kgo.HookGroupManageError].
func (h clientHooks) OnGroupManageError(error) { h.groupErrors.Inc() }
