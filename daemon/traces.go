package daemon

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/telemetry"
)

// Traces returns what records the traces of a program, as OpenTelemetry's own
// variables in its environment say; nil where they name nobody who takes them. A
// [config.Error] says which of them cannot be used.
func Traces(ctx context.Context, log *zap.Logger, environ []string, program, version string) (*telemetry.Tracer, error) {
	s, err := telemetry.Read(environ)
	if err != nil {
		return nil, variable(err)
	}
	if !s.On() {
		return nil, nil
	}
	often := Sampled(log)
	t, err := telemetry.New(ctx, telemetry.Options{
		Service: program, Version: version, Settings: s,
		Warn: func(err error) { often.Warn("traces are not taken, and are dropped", zap.Error(err)) },
	})
	if err != nil {
		return nil, variable(err)
	}
	log.Info("traces are sent") // where to may hold a secret
	return t, nil
}

// variable makes an error that names a variable one of settings.
func variable(err error) error {
	var fault *telemetry.Error
	if errors.As(err, &fault) {
		return &config.Error{Name: fault.Name, Source: "environment", Fault: fault.Fault}
	}
	return err
}
