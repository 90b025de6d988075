package awskms

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/smithy-go/logging"
)

const (
	defaultTimeout  = 30 * time.Second
	defaultAttempts = 5
	// A server that is not AWS does not care, but a request is signed for one.
	defaultRegion = "us-east-1"
)

// Options say how KMS is reached. Credentials are those that the AWS SDK finds
// in the environment, in the shared configuration files, in a web identity token
// or on the machine.
type Options struct {
	Name     string        // of the key in notes; there is no default
	Region   string        // "": the one in the key's ARN, or the SDK's; with an endpoint and neither, us-east-1
	Endpoint string        // "": AWS, or AWS_ENDPOINT_URL
	Timeout  time.Duration // of one call, with all its attempts; 0: 30 s
	Attempts int           // of one call, while KMS throttles or does not answer; 0: 5

	backoff retry.BackoffDelayer // between attempts; nil: the SDK's
}

func (o Options) timeout() time.Duration {
	if o.Timeout == 0 {
		return defaultTimeout
	}
	return o.Timeout
}

func (o Options) attempts() int {
	if o.Attempts == 0 {
		return defaultAttempts
	}
	return o.Attempts
}

// check returns an error that names what does not fit.
func (o Options) check() error {
	if o.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil:
		return errors.New("endpoint is not a URL")
	case u.User != nil:
		return errors.New("endpoint holds credentials: put them where the AWS SDK looks for them")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("endpoint=%s: want http://host:port or https://host:port", o.Endpoint)
	}
	return nil
}

// connect makes a client. It reaches nothing but what credentials are asked of.
func (o Options) connect(ctx context.Context) (*kms.Client, error) {
	load := []func(*config.LoadOptions) error{
		config.WithAppID("ledgerlake"),
		config.WithLogger(logging.Nop{}),
		// Of a kind that the SDK can teach AWS_CA_BUNDLE.
		config.WithHTTPClient(awshttp.NewBuildableClient()),
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, failed("look for credentials", err)
	}
	client := kms.NewFromConfig(cfg, o.configure)
	if client.Options().Region == "" {
		return nil, errors.New("no region: set it, or AWS_REGION")
	}
	return client, nil
}

func (o Options) configure(k *kms.Options) {
	if o.Endpoint != "" {
		k.BaseEndpoint = aws.String(o.Endpoint)
	}
	if k.Region == "" && k.BaseEndpoint != nil {
		k.Region = defaultRegion
	}
	k.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
		r.MaxAttempts = o.attempts()
		if o.backoff != nil {
			r.Backoff = o.backoff
		}
	})
}
