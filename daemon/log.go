package daemon

import (
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/ledgerlake/ledgerlake/config"
)

// NewLogger returns a logger that writes to w.
func NewLogger(w io.Writer, l config.Log) *zap.Logger {
	e := zap.NewProductionEncoderConfig()
	e.TimeKey, e.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	e.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(e)
	if l.Format == "console" {
		e.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		encoder = zapcore.NewConsoleEncoder(e)
	}
	level, err := zapcore.ParseLevel(l.Level)
	if err != nil {
		panic(err) // config takes zap's own words only
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level))
}

// PerSecond is how many lines a second the log has of one message where
// records, or a store or broker that is away, could cause any number.
const PerSecond = 5

// Sampled returns a logger that keeps to PerSecond.
func Sampled(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Second, PerSecond, 0)
	}))
}

// A ClientLog is the log of the Kafka client. What it calls information is
// detail to us; only its warnings and errors show at the usual level.
type ClientLog struct{ To *zap.SugaredLogger }

// Level returns the least that the client needs to say.
func (c ClientLog) Level() kgo.LogLevel {
	if c.To.Level() == zapcore.DebugLevel {
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelWarn
}

// Log writes one line.
func (c ClientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	to := zapcore.DebugLevel
	switch level {
	case kgo.LogLevelError:
		to = zapcore.ErrorLevel
	case kgo.LogLevelWarn:
		to = zapcore.WarnLevel
	}
	c.To.Logw(to, "kafka client: "+msg, keyvals...)
}
